"""What the chats have to do with kept prompt states."""
