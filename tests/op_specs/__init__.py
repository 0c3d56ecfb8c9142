"""The specs of all public ops, a file per family; importing this package registers them in `engine.SPECS`."""

import importlib

# `aliases` gives further names to the ops of those before it.
FAMILIES = """pointwise binary reduce order shape index linear matrices fourier special loss layers pooling random
 tensors norms statistics arrangement aliases excuses""".split()

for _family in FAMILIES:
    importlib.import_module(f"{__name__}.{_family}")
