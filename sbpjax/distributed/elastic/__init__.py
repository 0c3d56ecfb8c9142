"""Elastic jobs: one agent per host; when hosts leave or join, ranks restart on the available hosts."""
