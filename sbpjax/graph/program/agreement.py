"""Program agreement: before its first run, all ranks compare their versions of a program.

Rank 1 was started with another hidden size, or another version of a file. Its program sends other shapes through the
collectives, and all ranks would wait for each other, or read wrong numbers. So each rank sends the others the hash of
its program; where the hashes differ, the ranks look for the first difference: an input, or a line of the program.
"""

from __future__ import annotations

import hashlib
import re
import zlib

from sbpjax._core.runtime import processes
from sbpjax._core.runtime.ranks_text import ranks_text
from sbpjax.errors import AgreementError


def check_same_program(operation: str, inputs: list[str], text: str) -> None:
    """Raise on all ranks unless all ranks are about to run the same program.

    Args:
        operation: the user's request, for the error.
        inputs: the inputs, one line each.
        text: the program.

    Raises:
        AgreementError: ranks have other programs; the text names them and the first difference.
        LostRankError: ranks did not come.
    """
    world = processes.current()
    if world.size == 1:
        return
    # Threads as ranks count their graphs together.
    operation = re.sub(r"_\d+\b", "", operation.split("\n")[0])
    # The text itself only where it differs: that of a large step is megabytes, and every rank would get all of them.
    digest = hashlib.sha256(text.encode()).hexdigest()
    ranks = processes.by_value(world.exchange(f"{operation}: its program", (digest, tuple(inputs))))
    if len(ranks) == 1:
        return
    (first, others), *rest = ranks.items()
    seen = _first_input(first[1], others, rest) or _first_line(operation, text, world, others[0], rest[0][1][0])
    rule = "all ranks run the same program: same code, configuration, shapes and versions"
    groups = ", ".join(map(ranks_text, ranks.values()))
    fix = "build the model and its inputs alike on all ranks; look for code that depends on the rank"
    raise AgreementError(operation, f"{len(ranks)} programs, on ranks {groups}; {seen}", rule, fix)


def agree_on_numbers(operation: str, state, values: list[float]) -> None:
    """Raise on all ranks unless all ranks call the program with the same learning rates and other numbers.

    Args:
        operation: the user's request, for the error.
        state: the owner of the numbers.
        values: the numbers.

    Raises:
        AgreementError: they do not; the text names the first number that differs.
    """
    world = processes.current()
    if world.size == 1:
        return
    operation = re.sub(r"_\d+\b", "", operation.split("\n")[0])
    gathered = world.exchange(f"{operation}: its numbers", list(values))
    names = [name for _, name in getattr(state, "options", ())] or [f"number {i}" for i in range(len(values))]
    for i, name in enumerate(names):
        ranks = processes.by_value({rank: theirs[i] for rank, theirs in gathered.items()})
        if len(ranks) > 1:
            seen = f"{name}: " + ", ".join(f"{value:g} on ranks {ranks_text(some)}" for value, some in ranks.items())
            rule = "all ranks run the same program with the same numbers"
            raise AgreementError(operation, seen, rule, "configure the optimizer alike on all ranks")


def _first_input(mine: tuple, ranks: list[int], rest: list) -> str | None:
    for (_, theirs), others in rest:
        for i, (a, b) in enumerate(zip(mine, theirs, strict=False)):
            if a != b:
                where = f"{a} on ranks {ranks_text(ranks)}, {b} on ranks {ranks_text(others)}"
                return f"the first difference is input {i}: {where}"
        if len(mine) != len(theirs):
            return f"{len(mine)} inputs on ranks {ranks_text(ranks)}, {len(theirs)} on ranks {ranks_text(others)}"
    return None


def _first_line(operation: str, text: str, world, a: int, b: int) -> str:
    """Return the first line in which the programs of two ranks differ; all ranks call it."""
    lines = text.splitlines()
    sums = world.exchange(f"{operation}: its lines", [zlib.crc32(line.encode()) for line in lines])
    pairs = zip(sums[a], sums[b], strict=False)
    place = next((i for i, (x, y) in enumerate(pairs) if x != y), min(len(sums[a]), len(sums[b])))
    shown = world.exchange(
        f"{operation}: its line {place}", lines[place].strip()[:300] if place < len(lines) else "(end)"
    )
    return f"the first difference is line {place} of the program: {shown[a]!r} on rank {a}, {shown[b]!r} on rank {b}"
