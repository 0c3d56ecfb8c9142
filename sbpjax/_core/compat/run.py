"""Run a script with ``torch`` or ``oneflow`` aliased to sbpjax; the command is `sbpjax.run`."""

from __future__ import annotations

import argparse
import contextlib
import os
import runpy
import sys

from sbpjax._core.runtime.commands import command_parser

from . import oneflow_alias, stand_in, torch_alias

_PEERS = {"torch": torch_alias, "oneflow": oneflow_alias}


def main(argv: list[str] | None = None) -> None:
    """Run the command line."""
    parser = command_parser("sbpjax.run")
    peers = sorted(_PEERS)
    parser.add_argument(
        "--as",
        dest="names",
        action="append",
        choices=peers,
        help="the name under which sbpjax is imported; torch by default",
    )
    parser.add_argument(
        "--lazy", action="store_true", help="replace missing names by placeholders, which raise an error when used"
    )
    parser.add_argument("--verbose", action="store_true", help="print the missing names")
    parser.add_argument("-m", dest="module", action="store_true", help="the script is the name of a module")
    parser.add_argument("script", help="the script")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")
    options = parser.parse_args(argv)
    names = list(dict.fromkeys(options.names or ["torch"]))
    with contextlib.ExitStack() as stack:
        for name in names:
            stack.enter_context(_PEERS[name].enable(options.lazy, options.verbose))
        stack.enter_context(stand_in.alias_in_subprocesses(names, options.lazy, options.verbose))
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
