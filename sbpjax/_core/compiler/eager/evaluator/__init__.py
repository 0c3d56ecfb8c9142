"""NumPy evaluator: computes the jaxpr of a small eager op without compiling it.

`program` turns a jaxpr into a list of NumPy calls; the other files have a function per primitive, named as JAX's.
"""
