"""Multi-process runtime: member processes, rendezvous, collective traces, and host facts."""
