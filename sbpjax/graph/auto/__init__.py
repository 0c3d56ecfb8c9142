"""Auto parallelism of a graph: layouts chosen by the planner, and plan files that users edit."""
