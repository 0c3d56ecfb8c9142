"""Layers: `Module` subclasses with parameters or options."""
