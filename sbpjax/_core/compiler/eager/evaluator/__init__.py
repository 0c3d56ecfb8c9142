"""NumPy evaluator: computes the jaxpr of a small eager op without compiling it.

`program` turns a jaxpr into a list of NumPy calls; the other files have a function per primitive, named as JAX's. They
load SciPy and `jax.export`, so they are imported where ops are evaluated.
"""

from sbpjax._core.runtime.optional_packages import LazyModule

families = LazyModule("sbpjax._core.compiler.eager.evaluator.families")
first_use = LazyModule("sbpjax._core.compiler.eager.evaluator.first_use")
