"""Automatic differentiation: the tape and what a user does with it."""
