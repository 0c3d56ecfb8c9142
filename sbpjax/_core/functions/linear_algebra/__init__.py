"""Linear algebra beyond products: norms, decompositions, solves, low-rank approximation."""
