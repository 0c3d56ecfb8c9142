"""Linear algebra beyond products: norms, decompositions, equations, low rank."""
