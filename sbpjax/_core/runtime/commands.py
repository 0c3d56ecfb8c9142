"""Commands of the package: their names, one line and an example each, and the parser that they share.

    python -m sbpjax                       lists them
    python -m sbpjax cache info            is the same as python -m sbpjax.cache info

A new command is a module with a function `main(arguments)`, whose parser is `command_parser(its module)`, and a row of
`COMMANDS`.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import NamedTuple

from sbpjax._core.naming import VERSION


class Command(NamedTuple):
    """A command: the module that `python -m` runs, what it does, and the arguments of an example."""

    module: str
    description: str
    example: str


COMMANDS = {
    "doctor": Command("sbpjax._core.inspect.doctor", "Check versions, devices, the cache folder and extras.", ""),
    "run": Command("sbpjax.run", "Run a script written for torch or oneflow on sbpjax.", "--as torch train.py"),
    "launch": Command("sbpjax.distributed.launch", "Start a script once per rank.", "--nproc_per_node 2 train.py"),
    "train": Command(
        "sbpjax.train", "Train a model from a configuration.", "examples/gpt2/config.py trainer.max_steps=100"
    ),
    "view": Command("sbpjax.train.view", "Write the curves of training runs as one HTML page.", "runs/a runs/b"),
    "plan": Command(
        "sbpjax.plan",
        "Choose the parallelism of a transformer for a cluster.",
        "llama-70b --machine v5p:8x16x16 --batch 4M",
    ),
    "preprocess": Command("sbpjax.train.preprocess", "Encode texts into token files.", "texts.txt --output tokens"),
    "serve": Command("sbpjax.serving", "Serve exported graphs with Triton or KServe.", "repository --http-port 8000"),
    "serve-openai": Command(
        "sbpjax.serving.openai", "Serve a language model over OpenAI's HTTP interface.", "llama-7b --port 8080"
    ),
    "serve-run": Command(
        "sbpjax.serving.from_run",
        "Export a checkpoint of a run for serving.",
        "runs/vit repository/vit --input images:3x224x224",
    ),
    "cache": Command("sbpjax.cache", "List or delete the on-disk cache of compiled programs and plans.", "info"),
}


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help with the default of each option that has one, unless its text states it."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        text = action.help or ""
        if action.default in (None, False, argparse.SUPPRESS, []) or "default" in text or not action.option_strings:
            return action.help
        many = isinstance(action.default, list | tuple)
        default = " ".join(map(str, action.default)) if many else "%(default)s"
        return f"{text} (default: {default})".lstrip()


def command_parser(module: str) -> argparse.ArgumentParser:
    """Return the parser of a command, without options: its help ends with the example of `COMMANDS`.

    Args:
        module: the module that ``python -m`` runs; a row of `COMMANDS` has it.

    Example:
        >>> command_parser("sbpjax.cache").prog
        'python -m sbpjax.cache'
    """
    command = next(row for row in COMMANDS.values() if row.module == module)
    prog = f"python -m {module}" if "._" not in module else "python -m sbpjax doctor"
    return argparse.ArgumentParser(
        prog,
        description=command.description,
        epilog=f"example:\n  {prog} {command.example}".rstrip(),
        formatter_class=_HelpFormatter,
        allow_abbrev=False,
    )


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = ["usage: python -m sbpjax [--version] COMMAND …   (COMMAND --help lists its options)", ""]
    for name, row in COMMANDS.items():
        lines.append(f"  {name:{width}}  {row.description}")
        lines.append(f"  {'':{width}}  python -m sbpjax {name} {row.example}".rstrip())
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Run a command, or list all of them.

    Args:
        arguments: of the command line, without the program's name; `sys.argv` by default.

    Raises:
        SystemExit: the command failed, or its name is unknown (status 2).
    """
    name, *rest = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if name in ("-h", "--help"):
        print(_overview())
        return
    if name in ("-V", "--version"):
        print(f"sbpjax {VERSION}")
        return
    if name not in COMMANDS:
        print(f"{_overview()}\n\nerror: there is no command {name!r}", file=sys.stderr)
        sys.exit(2)
    module = COMMANDS[name].module
    is_package = module in ("sbpjax.train", "sbpjax.serving")
    code = importlib.import_module(f"{module}.cli" if is_package else module).main(rest)
    if code:
        sys.exit(code)
