"""Compile policy of eager ops: options, tiers, background compilation, caches in memory and on disk."""
