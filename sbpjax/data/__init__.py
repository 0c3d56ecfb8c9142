"""Data input and output: loaders, checkpoints, token files."""
