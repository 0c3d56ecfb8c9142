"""Checkpoints: one on-disk format and write protocol; readers for files of other frameworks."""
