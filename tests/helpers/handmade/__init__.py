"""Specs written by hand for transformers' own tensors: no reader of checkpoints between."""
