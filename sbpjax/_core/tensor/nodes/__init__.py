"""Nodes of the autograd graph (the tape)."""
