"""Cost model of plans: compute time, communication time, and compiler optimizations of both."""
