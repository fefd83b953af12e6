"""What can be done with a turn, which versions it has, and how a reply comes."""
