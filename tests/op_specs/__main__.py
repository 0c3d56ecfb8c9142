"""Test ops from the command line, on eight virtual devices; without names, all that have a spec.

python -m tests.op_specs add cumsum --seed 3 --cases 20
"""

from __future__ import annotations

import argparse
import os
import sys
import time

import sbpjax

from .engine import SPECS
from .engine.cases import FORMS
from .engine.check import Tally, tally_of


def main(arguments=None) -> int:
    """Run the cases asked for and print what differs; return 1 if anything does."""
    parser = argparse.ArgumentParser(prog="python -m tests.op_specs", description=__doc__)
    parser.add_argument("names", nargs="*", help="ops, such as nn.functional.gelu")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds")
    parser.add_argument("--cases", type=int, default=3, help="cases per form and seed")
    parser.add_argument("--forms", default=",".join(FORMS), help="names of forms, separated by commas")
    parser.add_argument("--short", action="store_true", help="one line per failure")
    options = parser.parse_args(arguments)
    unknown = [n for n in options.names if n not in SPECS]
    if unknown:
        parser.error(f"no spec for {', '.join(unknown)} in tests/op_specs")
    total, start = Tally(), time.perf_counter()
    for name in options.names or sorted(SPECS):
        seeds = range(options.seed, options.seed + options.seeds)
        tally = tally_of(SPECS[name], seeds, options.cases, options.forms.split(","))
        for failure in tally.failures:
            print(str(failure).splitlines()[0] if options.short else f"{failure}\n{'-' * 100}", flush=True)
        total.add(tally)
    share = 100 * (1 - len(total.failures) / max(total.ran, 1))
    print(
        f"{total.ran} cases, {len(total.failures)} differ, {total.excused} excused: {share:.2f} % equal, "
        f"{time.perf_counter() - start:.0f} s"
    )
    return int(bool(total.failures))


if __name__ == "__main__":
    if "SBPJAX_CPU_DEVICES" not in os.environ:
        sbpjax.env.set_cpu_devices(8)  # what the forms on placements need
    sys.exit(main())
