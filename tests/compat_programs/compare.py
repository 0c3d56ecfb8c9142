"""Compare what a program showed here with what it showed on OneFlow: numbers by tolerance, all else exactly."""

import math

RTOL = 1e-4
ATOL = 1e-5


def differences(expected, found):
    """Return what differs, the name and a line each; `expected` may hold one list of lines for all ranks.

    Args:
        expected: for each rank, or once for all, the `[name, value]` pairs that OneFlow showed.
        found: for each rank the pairs shown here.
    """
    lines = []
    for rank, mine in enumerate(found):
        theirs = expected[rank % len(expected)]
        for index, (name, value) in enumerate(theirs):
            if index >= len(mine):
                lines.append((name, f"rank {rank}: {name}: not shown"))
                break
            other, got = mine[index]
            if other != name or not _equal(value, got):
                lines.append((name, f"rank {rank}: {name}: OneFlow {_short(value)}, here {_short(got)}"))
        if len(mine) > len(theirs):
            name = mine[len(theirs)][0]
            lines.append((name, f"rank {rank}: {name}: not shown by OneFlow"))
    return lines


def _equal(a, b):
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(_equal(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(_equal, a, b))
    if type(a) is float and type(b) is float:
        return (math.isnan(a) and math.isnan(b)) or a == b or abs(a - b) <= ATOL + RTOL * abs(a)
    return type(a) is type(b) and a == b


def _short(value):
    text = str(value)
    return text if len(text) <= 300 else text[:300] + " ..."
