"""The program of a graph: trace, passes, plan, compiled calls."""
