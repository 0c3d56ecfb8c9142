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
        _require(
            _has_exact_type(place, dict)
            and _has_exact_type(place.get("type"), str)
            and _sizes(place.get("hierarchy"), 1),
            "placement",
        )
        _require(prod(place["hierarchy"]) <= _MOST_DEVICES, "placement.hierarchy")
        names = place.get("axis_names", [])
        _require(_has_exact_type(names, list) and all(_has_exact_type(n, str) for n in names), "placement.axis_names")
    axes = None if place is None else len(place["hierarchy"])
    for side in ("inputs", "outputs"):
        leaves = content[side].get("leaves")
        _check_each(leaves, f"{side}.leaves", lambda leaf, where: _leaf(leaf, where, axes))
        _require(_count_leaves(content[side].get("structure")) == len(leaves), f"{side}.structure")
        if side == "outputs":
            _check_each(
                leaves,
                "outputs.leaves",
                lambda leaf, where: _require("static" in leaf or _has_exact_type(leaf.get("global"), bool), where),
            )
    _state(content["state"], axes)
    _require(_has_exact_type(content["program"].get("random"), bool), "program.random")
    _require(_has_exact_type(content["program"].get("platforms"), list), "program.platforms")


def _state(state: dict, axes: int | None) -> None:
    for kind in ("tensors", "captured"):
        _check_each(state.get(kind), f"state.{kind}", lambda facts, where: _check_stored(facts, where, axes))
    _check_each(
        state["tensors"],
        "state.tensors",
        lambda facts, where: _require(_has_exact_type(facts.get("kind"), str), f"{where}.kind"),
    )
    count = len(state["tensors"])

    def slot(facts: Any, where: str) -> None:
        _require(_has_exact_type(facts, dict) and bool(facts.get("tensors")) and _sizes(facts["tensors"], 0), where)
        _require(max(facts["tensors"]) < count, f"{where}.tensors")
        _require(all(_has_exact_type(facts.get(k), bool) for k in ("own", "stacked", "written")), where)
        _require((len(facts["tensors"]) > 1) == facts["stacked"] and not (facts["own"] and facts["stacked"]), where)
        _require("sbp" in facts, f"{where}.sbp")
        _sbp(facts["sbp"], f"{where}.sbp", axes)

    def number(facts: Any, where: str) -> None:
        _require(
            _has_exact_type(facts, dict)
            and _has_exact_type(facts.get("name"), str)
            and _has_exact_type(facts.get("value"), str),
            where,
        )
        float(facts["value"])

    _check_each(state.get("inputs"), "state.inputs", slot)
    _check_each(state.get("numbers"), "state.numbers", number)
    order = state.get("order")
    _require(_sizes(order, 0) and len(set(order)) == len(order), "state.order")
    _require(all(i < len(state["inputs"]) for i in order), "state.order")


def _check_stored(facts: Any, where: str, axes: int | None) -> None:
    _tensor(facts, where, axes)
    _require("stored_as" in facts and facts["stored_as"] in (None, "uint8") and _sizes(facts["shape"], 0), where)


def _leaf(facts: Any, where: str, axes: int | None) -> None:
    if not (_has_exact_type(facts, dict) and "static" in facts):
        _tensor(facts, where, axes)
        return
    _require(
        _has_exact_type(facts.get("path"), str)
        and _has_exact_type(facts["static"], str)
        and facts["static"] in _STATICS,
        where,
    )
    _require(_has_exact_type(facts.get("value"), _STATICS[facts["static"]]), f"{where}.value")
    if facts["static"] == "float":
        float(facts["value"])


def _tensor(facts: Any, where: str, axes: int | None) -> None:
    _require(_has_exact_type(facts, dict) and _has_exact_type(facts.get("path"), str), where)
    shape = facts.get("shape")
    _require(
        _has_exact_type(shape, list)
        and all(_has_exact_type(d, str) or (_has_exact_type(d, int) and d >= 0) for d in shape),
        f"{where}.shape",
    )
    try:
        known = dtypes.as_dtype(facts["dtype"]).name if _has_exact_type(facts.get("dtype"), str) else None
    except OpTypeError:
        known = None
    _require(known == facts.get("dtype") and known is not None, f"{where}.dtype")
    _require("sbp" in facts, f"{where}.sbp")
    _sbp(facts["sbp"], f"{where}.sbp", axes)


def _sbp(sbp: Any, where: str, axes: int | None) -> None:
    if sbp is not None:
        _require(
            axes is not None
            and _has_exact_type(sbp, list)
            and len(sbp) == axes
            and all(_has_exact_type(s, str) for s in sbp),
            where,
        )


def _count_leaves(structure: Any) -> int:
    """Return the number of leaves of a structure, −1 if it is nested absurdly or no structure."""
    # A list of the remaining parts: a crafted structure could be deeper than Python's stack.
    count, waiting = 0, [(structure, 0)]
    while waiting:
        found, depth = waiting.pop()
        if found is None:
            count += 1
        elif (
            depth > _MOST_DEPTH
            or not _has_exact_type(found, list)
            or len(found) < 2
            or not _has_exact_type(found[-1], list)
        ):
            return -1
        else:
            waiting += [(child, depth + 1) for child in found[-1]]
    return count


def _has_exact_type(value: Any, kind: type) -> bool:
    # Not `isinstance`: JSON's true would pass as an integer.
    return type(value) is kind


def _sizes(values: Any, least: int) -> bool:
    return _has_exact_type(values, list) and all(_has_exact_type(n, int) and n >= least for n in values)


def _check_each(values: Any, where: str, one: Callable[[Any, str], None]) -> None:
    _require(_has_exact_type(values, list), where)
    for i, value in enumerate(values):
        one(value, f"{where}[{i}]")


def _require(holds: bool, where: str) -> None:
    if not holds:
        raise ValueError(f"its field {where}")
