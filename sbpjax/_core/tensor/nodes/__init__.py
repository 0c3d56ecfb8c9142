"""Nodes of the autograd graph."""
