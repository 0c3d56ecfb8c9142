"""Optimization algorithms, one file per family."""
