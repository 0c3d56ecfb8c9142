"""The text of the first difference between the collective traces of two ranks."""

from __future__ import annotations

from collections.abc import Sequence

from sbpjax._core.runtime.ranks_text import ranks_text
from sbpjax.errors import AT_ITS_END, ENDS_ALIKE, READ_BY_ALL

_TO_READ = "identity "  # the conversions that bring the parts of a value together, for a reader too


def difference(members: Sequence[int], accounts: dict[int, list], ended: Sequence[int] = ()) -> str:
    """Return the text of the first difference between two ranks.

    Args:
        members: the processes of the trace.
        accounts: `CollectiveTrace.recent_calls` of both.
        ended: which of the two came to the end of their programs.
    """
    (a, (count_a, calls_a)), (b, (count_b, calls_b)) = accounts.items()
    first = max(count_a - len(calls_a), count_b - len(calls_b)) + 1  # of both
    last = min(count_a, count_b)
    states_a, states_b = calls_a[first - 1 - count_a + len(calls_a) :], calls_b[first - 1 - count_b + len(calls_b) :]
    pairs = zip(range(first, last + 1), states_a, states_b, strict=False)
    where = next((n for n, x, y in pairs if x[0] != y[0]), None)
    rule = "every rank runs the same operations in the same order, with the same options and numbers"
    fix = "look for code that depends on the rank at these lines, and before them"
    operation = f"call {where} of ranks {ranks_text(members)} together"
    if where is None and last < first:
        operation = f"the calls of ranks {ranks_text(members)} together"
        seen = f"rank {a} made {count_a} and rank {b} {count_b}; no call is kept by both"
    elif where is None:
        longer, shorter, calls = (a, b, calls_a) if count_a > count_b else (b, a, calls_b)
        did = AT_ITS_END if shorter in ended else "waits"
        operation = f"call {last + 1} of ranks {ranks_text(members)} together"
        seen = f"rank {longer}: {calls[last - max(count_a, count_b)][1]}; rank {shorter} {did} after {last} calls"
        rule = "every rank makes the same number of calls; reading a global tensor (item(), numpy(), print) is one"
        fix = f"{READ_BY_ALL[1]}; else look for code that depends on the rank there"
        if shorter in ended:
            rule, fix = ENDS_ALIKE
    elif where == first and first > 1:
        operation = f"the calls of ranks {ranks_text(members)} together"
        seen = f"the first difference is before call {first}, the first that is kept; "
        seen += f"there rank {a}: {states_a[0][1]}; rank {b}: {states_b[0][1]}"
    else:
        both = states_a[where - first][1], states_b[where - first][1]
        seen = f"rank {a}: {both[0]}; rank {b}: {both[1]}"
        if any(words.startswith(_TO_READ) for words in both):
            fix += f"; a value that is read, is read by all: {READ_BY_ALL[1]}"
    return f"{operation} differs\n  seen: {seen}\n  rule: {rule}\n  fix:  {fix}"
