"""What OneFlow moved while an op ran, recorded conversion by conversion: our plan moves no more, in nearly all of them.

The recorded conversions are priced as ours are: bytes that one device receives along the cheapest path. What an op of
OneFlow's moves inside itself was not recorded and counts nothing.
"""

import math
import re

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.sbp import boxing, placement
from tests.oracle.notation import codes_of, load
from tests.oracle.planning import flat, plan_only, stand_in
from tests.oracle.signatures import dtype_of, evaluator, facts

FILES = ("boxing_1d", "boxing_2d")
AT_LEAST = 0.97
CONVERSION = re.compile(r"([\dx]*) (\S+?)>([^\s,]+)")


def recorded_bytes(moves: str, op: dict, hierarchy) -> int:
    """Return the bytes of recorded conversions such as ``8x12 S0>S1, 12x16 S0.S1>S0.S0``; other shapes are float32."""
    itemsize = {tuple(s): np.dtype(dtype_of(k)).itemsize for k, s in op["inputs"]}
    total = 0
    for shape, source, target in CONVERSION.findall(moves):
        dims = tuple(int(n) for n in shape.split("x")) if shape else ()
        steps = boxing.path(dims, itemsize.get(dims, 4), hierarchy, codes_of(source), codes_of(target))
        total += sum(s.bytes for s in steps)
    return total


@pytest.mark.parametrize("name", FILES)
def test_moves(name):
    where = placement("cpu", load(name)["meta"]["placement"])
    results = []
    for op, case, recorded in facts(name):
        inputs = zip(op["inputs"], case.split("|"), strict=True)
        tensors = [stand_in(s, dtype_of(k), where, codes_of(c)) for (k, s), c in inputs]
        with plan_only() as plans:
            flat(evaluator(op["expr"], flow)(*tensors))
        ours, theirs = sum(p.bytes for p in plans), recorded_bytes(recorded.split("->")[0], op, where.hierarchy)
        results.append((op["op"], case, ours, theirs))
    assert all(math.isfinite(t) for *_, t in results)
    more = [r for r in results if r[2] > r[3]]
    assert len(more) <= (1 - AT_LEAST) * len(results), f"{len(more)} of {len(results)}: {more[:20]}"
    assert sum(r[2] for r in results) < sum(r[3] for r in results)
