"""Peak-memory estimates of planned programs, and plans within a memory limit."""
