"""What follows the death of an engine: whether it starts again, and what it may load then."""
