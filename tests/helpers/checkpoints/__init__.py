"""Tiny random checkpoints of every family, saved and converted by their makers' own tools."""
