"""Random ops with explicit keys."""
