"""Auto parallelism of a graph: what the planner lays out, and plans that users edit."""
