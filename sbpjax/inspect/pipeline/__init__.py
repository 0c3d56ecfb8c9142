"""Reports on pipelines."""
