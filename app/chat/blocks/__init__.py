"""The parts of a transcript: flowing text, blocks, the column that holds them."""
