"""Report of a search over layouts of a cluster, and its command."""
