"""How XLA compiles in tests: most of a clean run is its compiler, on thousands of programs that run once.

LLVM's cheap passes take a quarter off that. What XLA itself decides (fusion, collectives, buffers) is as for users,
since LLVM comes after it. ``XLA_FLAGS= make test`` compiles as users do.
"""

QUICK = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
