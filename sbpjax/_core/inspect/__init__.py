"""Reports: what a program does, moves, holds and costs, as tables and pictures."""
