"""Dispatch: local, global and traced execution of an op."""
