"""Recorded signatures against ours: equal, cheaper, or one of the listed differences.

For one fact ``a @ b`` of ``S0 | B → S0``: evaluate the expression on global tensors that lie as recorded, see in which
layout the output comes and how many bytes the plans moved. Is the layout another than OneFlow's, ask what any plan
would move to end in OneFlow's layout: if that is more, ours is strictly cheaper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sbpjax._core.planner.program import plan_program
from sbpjax.sbp import placement as Placement
from tests.oracle import inputs as make
from tests.oracle.notation import codes_of, load, text_of
from tests.oracle.planning import NeedsValueError, flat, pinned_bytes, plan_only, program_of, stand_in

EQUAL, CHEAPER, TIE, DEARER, ONLY_HERE, NEEDS_VALUE = "equal", "cheaper", "tie", "dearer", "only here", "needs value"


@dataclass(frozen=True)
class Outcome:
    """What came of one fact.

    Attributes:
        file: the file of facts.
        op: the name of the recorded op.
        expr: its expression.
        case: the sbps of the inputs.
        theirs: OneFlow's output sbps, or its failure.
        ours: our output sbps.
        kind: equal, cheaper, tie (as many bytes, another layout), dearer, only here (OneFlow failed), needs value.
        our_bytes: what our plans move.
        their_bytes: the least that any plan moves to end in OneFlow's layout.
        wrong_value: whether OneFlow's value was wrong.
        ops: how many ops the expression ran.
    """

    file: str
    op: str
    expr: str
    case: str
    theirs: str
    ours: str
    kind: str
    our_bytes: int = 0
    their_bytes: int = 0
    wrong_value: bool = False
    ops: int = 1


def evaluator(expr: str, flow):
    """Return the function of an expression over inputs a, b, c, …."""
    compiled = compile(expr, expr, "eval")

    def evaluate(*tensors):
        return eval(compiled, {"flow": flow, "np": np, **dict(zip(make.NAMES, tensors, strict=False))})

    return evaluate


def dtype_of(kind: str):
    """Return the dtype of an input kind."""
    return {"f32": np.float32, "boo": np.bool_, "i64": np.int64}[kind[:3]]


def facts(name: str):
    """Yield ``(op, case, result)`` of a file."""
    for op in load(name)["ops"]:
        for case, result in op["cases"].items():
            yield op, case, result


_PROGRAMS: dict = {}


def _program(op: dict, where, evaluate):
    avals = tuple((tuple(s), dtype_of(k)) for k, s in op["inputs"])
    key = (op["expr"], avals, where)
    if key not in _PROGRAMS:
        _PROGRAMS[key] = program_of(evaluate, avals, where)
    return _PROGRAMS[key]


def _eager(op: dict, codes, where, evaluate):
    """Return ``(output sbps, bytes, ops)`` of an expression, planned op by op as it runs."""
    tensors = [stand_in(s, dtype_of(k), where, c) for (k, s), c in zip(op["inputs"], codes, strict=True)]
    with plan_only() as plans:
        results = flat(evaluate(*tensors))
    return ";".join(text_of(t._layout.codes) for t in results), sum(p.bytes for p in plans), len(plans)


def _traced(op: dict, codes, where, evaluate):
    """Return ``(output sbps, bytes, 1)`` of an expression, planned as one traced program."""
    plan = plan_program(_program(op, where, evaluate), where.hierarchy, tuple(codes))
    return ";".join(text_of(c) for c in plan.out_codes), plan.bytes, 1


def outcome(name: str, op: dict, case: str, theirs: str, flow) -> Outcome:
    """Plan one fact and judge it."""
    where = Placement("cpu", load(name)["meta"]["placement"])
    codes = [codes_of(t) for t in case.split("|")]
    evaluate = evaluator(op["expr"], flow)
    common = {"file": name, "op": op["op"], "expr": op["expr"], "case": case, "theirs": theirs}
    common["wrong_value"] = case in op.get("wrong_value", ())
    try:
        if name.startswith("graph"):
            ours, our_bytes, common["ops"] = _traced(op, codes, where, evaluate)
        else:
            ours, our_bytes, common["ops"] = _eager(op, codes, where, evaluate)
    except NeedsValueError:
        return Outcome(**common, ours="", kind=NEEDS_VALUE)
    if theirs.startswith("!"):
        return Outcome(**common, ours=ours, kind=ONLY_HERE, our_bytes=our_bytes)
    if ours == theirs:
        return Outcome(**common, ours=ours, kind=EQUAL, our_bytes=our_bytes, their_bytes=our_bytes)
    program = _program(op, where, evaluate)
    wanted = [codes_of(t) for t in theirs.split(";")]
    their_bytes = pinned_bytes(program, where, codes, wanted)
    kind = CHEAPER if our_bytes < their_bytes else TIE if our_bytes == their_bytes else DEARER
    return Outcome(**common, ours=ours, kind=kind, our_bytes=our_bytes, their_bytes=their_bytes)
