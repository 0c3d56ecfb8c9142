"""``python -m sbpjax.run --as torch script.py [args]``: run a script with a foreign name answered by sbpjax.

``--as torch`` answers to ``torch``, ``--as oneflow`` to ``oneflow``, both may be given; ``-m package.module`` runs a
module instead of a file. What stands behind the script's name is the script's own: ``sys.argv`` is as if Python ran it.
Processes that the script starts (`multiprocessing`, data workers, `subprocess`) answer to the names too.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import runpy
import sys

from . import mock_oneflow, mock_torch
from .mock import stand_in

_PEERS = {"torch": mock_torch, "oneflow": mock_oneflow}


def main(argv: list[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser("python -m sbpjax.run", description="Run a script of another framework on sbpjax.")
    parser.add_argument("--as", dest="names", action="append", choices=sorted(_PEERS), help="the name to answer to")
    parser.add_argument("--lazy", action="store_true", help="placeholders for missing names, which raise when used")
    parser.add_argument("--verbose", action="store_true", help="print which names are missing")
    parser.add_argument("-m", dest="module", action="store_true", help="the script is a module's name")
    parser.add_argument("script", help="the script")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")
    options = parser.parse_args(argv)
    names = list(dict.fromkeys(options.names or ["torch"]))
    with contextlib.ExitStack() as stack:
        for name in names:
            stack.enter_context(_PEERS[name].enable(options.lazy, options.verbose))
        stack.enter_context(stand_in.put_on_paths(names, options.lazy, options.verbose))
        before, path = sys.argv, list(sys.path)
        sys.argv = [options.script, *options.args]
        try:
            if options.module:
                sys.path.insert(0, os.getcwd())
                runpy.run_module(options.script, run_name="__main__", alter_sys=True)
            else:
                sys.path.insert(0, os.path.dirname(os.path.realpath(options.script)))
                runpy.run_path(options.script, run_name="__main__")
        finally:
            sys.argv, sys.path[:] = before, path


if __name__ == "__main__":
    main()
