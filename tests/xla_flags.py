"""How XLA compiles in tests: most of a clean run is its compiler, on thousands of programs that run once.

LLVM's cheap passes take a quarter off that, and emitters of loops that write LLVM's code directly, not through MLIR,
another third to a half. What XLA plans (collectives, layouts, most fusions) is as for users; a test of fusions compiles
with `USUAL`. ``XLA_FLAGS= make test`` compiles as users do, and so do always the tests of engines, serving and random
numbers.
"""

import importlib.metadata

_EMITTERS = "xla_cpu_use_fusion_emitters"
_HAS_CHOICE = int(importlib.metadata.version("jaxlib").split(".")[1]) < 11  # jaxlib 0.12 refuses the option

QUICK = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
QUICK += " --xla_cpu_parallel_codegen_split_count=1"
QUICK += f" --{_EMITTERS}=false" * _HAS_CHOICE

# A user's compilation, as options of `jax.stages.Lowered.compile`.
USUAL = {"xla_backend_optimization_level": 3, "xla_llvm_disable_expensive_passes": False}
USUAL |= {_EMITTERS: True} if _HAS_CHOICE else {}
