"""Commands that look at the machine: a report on it, and how fast it is."""
