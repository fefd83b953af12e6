"""Pictures of the window in its main states, made with the fake engine."""
