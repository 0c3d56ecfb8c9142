"""The launcher without the rest of the package, whose import takes longer than a test of agents may.

python bare.py --nnodes 1:4 ... script.py        as python -m sbpjax.distributed.launch
"""

import sys
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def without_package():
    """Make the modules of `sbpjax.distributed` importable without running the packages' own imports."""
    for name in ("sbpjax", "sbpjax.distributed"):
        package = types.ModuleType(name)
        package.__path__ = [str(ROOT / name.replace(".", "/"))]
        sys.modules[name] = package


if __name__ == "__main__":
    without_package()
    from sbpjax.distributed import launch

    sys.exit(launch.main())
