"""Schema of the manifest: types, names and ranges of every field, checked before use.

check({"state": {"order": [7], …}, …})     # ValueError: state.order[0] is 7, of 3 inputs
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax.errors import OpTypeError

_MOST_DEVICES = 2**20
# Containers in containers among arguments and results.
_MOST_DEPTH = 64
_STATICS = {"NoneType": type(None), "bool": bool, "int": int, "float": str, "str": str}  # as which JSON type


def check(content: dict) -> None:
    """Compare the fields of a manifest with those that `Graph.export` writes.

    Raises:
        ValueError: one is missing or of another kind; the text names it.
    """
    place = content.get("placement")
    if place is not None:
        _need(_is(place, dict) and _is(place.get("type"), str) and _sizes(place.get("hierarchy"), 1), "placement")
        _need(prod(place["hierarchy"]) <= _MOST_DEVICES, "placement.hierarchy")
        names = place.get("axis_names", [])
        _need(_is(names, list) and all(_is(n, str) for n in names), "placement.axis_names")
    axes = None if place is None else len(place["hierarchy"])
    for side in ("inputs", "outputs"):
        leaves = content[side].get("leaves")
        _each(leaves, f"{side}.leaves", lambda leaf, where: _leaf(leaf, where, axes))
        _need(_leaves(content[side].get("structure")) == len(leaves), f"{side}.structure")
        if side == "outputs":
            _each(
                leaves,
                "outputs.leaves",
                lambda leaf, where: _need("static" in leaf or _is(leaf.get("global"), bool), where),
            )
    _state(content["state"], axes)
    _need(_is(content["program"].get("random"), bool), "program.random")
    _need(_is(content["program"].get("platforms"), list), "program.platforms")


def _state(state: dict, axes: int | None) -> None:
    for kind in ("tensors", "captured"):
        _each(state.get(kind), f"state.{kind}", lambda facts, where: _check_stored(facts, where, axes))
    _each(state["tensors"], "state.tensors", lambda facts, where: _need(_is(facts.get("kind"), str), f"{where}.kind"))
    count = len(state["tensors"])

    def slot(facts: Any, where: str) -> None:
        _need(_is(facts, dict) and bool(facts.get("tensors")) and _sizes(facts["tensors"], 0), where)
        _need(max(facts["tensors"]) < count, f"{where}.tensors")
        _need(all(_is(facts.get(k), bool) for k in ("own", "stacked", "written")), where)
        _need((len(facts["tensors"]) > 1) == facts["stacked"] and not (facts["own"] and facts["stacked"]), where)
        _need("sbp" in facts, f"{where}.sbp")
        _sbp(facts["sbp"], f"{where}.sbp", axes)

    def number(facts: Any, where: str) -> None:
        _need(_is(facts, dict) and _is(facts.get("name"), str) and _is(facts.get("value"), str), where)
        float(facts["value"])

    _each(state.get("inputs"), "state.inputs", slot)
    _each(state.get("numbers"), "state.numbers", number)
    order = state.get("order")
    _need(_sizes(order, 0) and len(set(order)) == len(order), "state.order")
    _need(all(i < len(state["inputs"]) for i in order), "state.order")


def _check_stored(facts: Any, where: str, axes: int | None) -> None:
    _tensor(facts, where, axes)
    _need("stored_as" in facts and facts["stored_as"] in (None, "uint8") and _sizes(facts["shape"], 0), where)


def _leaf(facts: Any, where: str, axes: int | None) -> None:
    if not (_is(facts, dict) and "static" in facts):
        _tensor(facts, where, axes)
        return
    _need(_is(facts.get("path"), str) and _is(facts["static"], str) and facts["static"] in _STATICS, where)
    _need(_is(facts.get("value"), _STATICS[facts["static"]]), f"{where}.value")
    if facts["static"] == "float":
        float(facts["value"])


def _tensor(facts: Any, where: str, axes: int | None) -> None:
    _need(_is(facts, dict) and _is(facts.get("path"), str), where)
    shape = facts.get("shape")
    _need(_is(shape, list) and all(_is(d, str) or (_is(d, int) and d >= 0) for d in shape), f"{where}.shape")
    try:
        known = dtypes.as_dtype(facts["dtype"]).name if _is(facts.get("dtype"), str) else None
    except OpTypeError:
        known = None
    _need(known == facts.get("dtype") and known is not None, f"{where}.dtype")
    _need("sbp" in facts, f"{where}.sbp")
    _sbp(facts["sbp"], f"{where}.sbp", axes)


def _sbp(sbp: Any, where: str, axes: int | None) -> None:
    if sbp is not None:
        _need(axes is not None and _is(sbp, list) and len(sbp) == axes and all(_is(s, str) for s in sbp), where)


def _leaves(structure: Any) -> int:
    """Return the number of leaves of a structure, −1 if it is nested absurdly or no structure."""
    # A list of the remaining parts: a crafted structure could be deeper than Python's stack.
    count, waiting = 0, [(structure, 0)]
    while waiting:
        found, depth = waiting.pop()
        if found is None:
            count += 1
        elif depth > _MOST_DEPTH or not _is(found, list) or len(found) < 2 or not _is(found[-1], list):
            return -1
        else:
            waiting += [(child, depth + 1) for child in found[-1]]
    return count


def _is(value: Any, kind: type) -> bool:
    # Not `isinstance`: JSON's true would pass as an integer.
    return type(value) is kind


def _sizes(values: Any, least: int) -> bool:
    return _is(values, list) and all(_is(n, int) and n >= least for n in values)


def _each(values: Any, where: str, one: Callable[[Any, str], None]) -> None:
    _need(_is(values, list), where)
    for i, value in enumerate(values):
        one(value, f"{where}[{i}]")


def _need(holds: bool, where: str) -> None:
    if not holds:
        raise ValueError(f"its field {where}")
