"""Special functions: gamma, Bessel, orthogonal polynomials, integer pairs."""
