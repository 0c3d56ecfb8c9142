"""Elastic jobs: one agent per host, epochs of hosts, ranks that start again on the hosts that are there."""
