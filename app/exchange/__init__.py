"""What goes out of the store and comes back: backups, documents of a chat. Knows no Qt."""
