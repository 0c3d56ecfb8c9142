"""Standby of a rank: a process with all imports done, which replaces the rank at the next start.

    python -m sbpjax.distributed.launch --nproc_per_node 2 --max_restarts 3 --standby my_project.model train.py

    second 0     ranks 0 and 1 start
          20     two standbys start, import sbpjax.train and my_project.model, and wait
         300     rank 1 dies; the standbys run train.py as ranks 0 and 1, without the time of imports

The launcher starts ``python -m sbpjax.distributed.standby MODULES [-m] PROGRAM …`` and later writes the environment of
the rank to its input, as one line of JSON. A standby touches no device before: JAX connects the processes of a run
before it starts their devices.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import sys

from . import env

_USUAL = (  # else imported in the first steps
    "sbpjax.train",
    "sbpjax._core.compiler.eager.evaluator.program",
    "scipy.sparse.csgraph",
)


def main(arguments: list[str]) -> None:
    """Import, wait for the environment of a rank, and run its program; without one, end.

    Args:
        arguments: names of modules to import, separated by commas; then the command line of the program after
            ``python``.
    """
    modules, *command = arguments
    is_module = command[0] == "-m"
    sys.argv = command[is_module:]
    if not sys.flags.safe_path:
        sys.path[0] = os.getcwd() if is_module else os.path.dirname(os.path.abspath(sys.argv[0]))
    for name in (*_USUAL, *filter(None, modules.split(","))):
        try:
            importlib.import_module(name)
        except Exception as error:  # the program raises it again, if it needs the module
            sys.stderr.write(f"--standby {modules}: {name} cannot be imported: {type(error).__name__}: {error}\n")
    line = sys.stdin.readline()
    if not line:
        return
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.environ.clear()
    os.environ.update(json.loads(line))
    env.prepare_process()
    if is_module:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
