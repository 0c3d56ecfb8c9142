"""Linear algebra ops: products, decompositions, solves."""
