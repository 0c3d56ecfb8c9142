"""The tape: what ops leave behind for the way back."""
