"""Reports: the ops, traffic, memory and cost of a program, as tables and pictures."""
