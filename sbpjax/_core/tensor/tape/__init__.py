"""The tape: what was computed, and the way back through it."""
