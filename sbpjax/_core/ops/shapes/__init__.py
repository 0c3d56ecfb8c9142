"""Shape ops: views, rearrangement, indexing, gather and scatter."""
