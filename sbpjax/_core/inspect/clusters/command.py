"""Command that searches a layout of a transformer for a cluster: ``python -m sbpjax.plan MODEL --machine MACHINE``.

python -m sbpjax.plan llama-70b --machine v5p:8x16x16 --batch 4M
python -m sbpjax.plan llama-405b --machine h100:512x8 --batch 16M --length 8192 --html plan.html
python -m sbpjax.plan config.json --machine 4*v5e:16x16 --batch 4M --recompute none full dots
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sbpjax._core.inspect.display import whole_page
from sbpjax._core.inspect.html import STYLE
from sbpjax._core.planner.clusters.layout import PRECISIONS, Layout
from sbpjax._core.planner.clusters.machine import machine
from sbpjax._core.planner.clusters.search import search
from sbpjax._core.planner.clusters.transformer import MODELS, transformer
from sbpjax._core.runtime.commands import command_parser
from sbpjax._core.runtime.user_line import full_tracebacks
from sbpjax.errors import ConfigError, SbpjaxError

from .report import POLICIES, SearchReport

_UNITS = {"k": 2**10, "m": 2**20, "g": 2**30}


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command's options."""
    made = command_parser("sbpjax.plan")
    made.add_argument("model", help=f"one of {', '.join(MODELS)}, or the path of a config.json")
    made.add_argument("--machine", required=True, help="v5p:8x16x16, h100:HOSTSx8, or slices: 4*v5e:16x16")
    made.add_argument("--batch", required=True, help="tokens per step, such as 4M (M = 1,048,576)")
    made.add_argument("--length", type=int, default=8192, help="tokens per sequence")
    made.add_argument("--precision", choices=PRECISIONS, default="bfloat16", help="dtype of products with parameters")
    made.add_argument(
        "--recompute", nargs="+", choices=POLICIES, default=["none", "full"], help="recomputation policies to try"
    )
    made.add_argument(
        "--memory", type=float, metavar="GB", help="memory limit of a chip; by default the one in its data sheet"
    )
    made.add_argument("--html", type=Path, metavar="FILE", help="also write the report as an HTML page")
    return made


def tokens(text: str) -> int:
    """Return a number of tokens with an optional unit k, M or G, which are powers of 1,024.

    Raises:
        ConfigError: it is no such number.

    Example:
        >>> tokens("4M")
        4194304
    """
    unit = _UNITS.get(text[-1:].lower(), 1)
    digits = text[:-1] if unit > 1 else text
    if not digits.isdecimal() or not int(digits):
        raise ConfigError(
            f"--batch {text}", repr(text), "a whole number of tokens, or one with k, M or G", "--batch 4M"
        )
    return int(digits) * unit


def run(options: argparse.Namespace) -> SearchReport:
    """Return the report of a command line."""
    batch, length = tokens(options.batch), options.length
    if length < 1:
        raise ConfigError(f"--length {length}", f"{length}", "a sequence has at least one token", "--length 8192")
    sequences, rest = divmod(batch, length)
    if rest:
        rule, below = f"a batch has whole sequences of {length:,} tokens", sequences * length
        fix = " or ".join(f"--batch {near}" for near in (below, below + length) if near)
        raise ConfigError(f"--batch {options.batch} --length {length}", f"{batch:,} tokens", rule, fix)
    found = search(
        transformer(options.model),
        machine(options.machine),
        length,
        sequences,
        base=Layout(precision=options.precision),
        recompute=options.recompute,
        limit_bytes=options.memory and options.memory * 1e9,
    )
    return SearchReport(found)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    options = parser().parse_args(arguments)
    try:
        report = run(options)
    except SbpjaxError as error:
        if full_tracebacks():
            raise
        sys.exit(f"error: {error}")
    print(report)
    if options.html:
        title = f"{options.model} on {options.machine}"
        options.html.write_text(whole_page(title, f"{STYLE}<div class='sbpjax'>{report._repr_html_()}</div>"))
