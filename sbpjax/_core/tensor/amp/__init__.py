"""Autocasting."""
