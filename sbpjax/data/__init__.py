"""Data in and out: loaders and checkpoints."""
