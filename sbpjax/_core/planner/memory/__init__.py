"""What a planned program holds in memory, and plans within a limit."""
