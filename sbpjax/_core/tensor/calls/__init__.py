"""Argument checks, argument names and error translation of public calls."""
