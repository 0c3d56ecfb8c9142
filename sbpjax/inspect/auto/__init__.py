"""Reports on auto parallelism."""
