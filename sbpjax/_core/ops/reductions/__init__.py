"""Reductions, cumulative functions, sorting, statistics."""
