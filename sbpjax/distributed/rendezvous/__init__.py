"""Rendezvous of the processes of a run, and propagation of failures between them."""
