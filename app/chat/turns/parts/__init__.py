"""What is shown around the text of a turn: its row of actions, its versions, its thoughts."""
