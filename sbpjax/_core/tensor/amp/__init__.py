"""Autocasting: mixed-precision execution of ops."""
