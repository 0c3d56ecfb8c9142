"""Checkpoints: one format, one protocol of writing; files of other packages, read."""
