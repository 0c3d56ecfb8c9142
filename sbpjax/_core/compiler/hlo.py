"""HLO parser: the collectives of a compiled program, with their bytes and groups.

The compiled program must move the same bytes as its plan. For the line

    %ar = f32[128,128]{1,0} all-reduce(%x), replica_groups={{0,1,2,3},{4,5,6,7}}, to_apply=%add

`collectives` finds an all-reduce of 65,536 bytes over groups of four: 98,304 bytes on the interconnect per device. A
collective inside a loop counts as often as the loop iterates; of an asynchronous pair the start counts; an all-reduce
that the TPU compiler fused with a slice of its result (``%all-reduce-scatter``) is a reduce-scatter. A collective that
it fused with products (`_core.compiler.options`) is in the fusion that starts it, in those that it goes on in, and in
the one that ends it: the first counts. Between slices of TPUs a collective is a send to the runtime of the network:
its group is one device of each slice.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

_ITEMSIZE = {
    "pred": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8,
    "u64": 8, "f64": 8, "c64": 8, "c128": 16, "s4": 1, "u4": 1, "f8e4m3fn": 1, "f8e5m2": 1,
}  # fmt: skip

_KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute", "ragged-all-to-all")
_LINE = re.compile(rf"^\s*(?:ROOT )?%?[\w.-]+ = (.*?) ({'|'.join(_KINDS)})(-start)?\((.*)$")
_SHAPE = re.compile(r"(\w+)\[([\d,]*)\]")
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.-]+) .*\{\s*$")
_CALL = re.compile(
    r"(?:body|condition|to_apply|calls|true_computation|false_computation|called_computation)=%?([\w.-]+)"
)
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_CONDITION = re.compile(r"condition=%?([\w.-]+)")
_CONSTANT = re.compile(r"^\s*(?:ROOT )?%?([\w.-]+) = [su]\d+\[\]\S* constant\((\d+)\)")
_GROUPS = re.compile(r"replica_groups=\{\{([\d,]*)\}")
_IOTA_GROUPS = re.compile(r"replica_groups=\[(\d+),(\d+)\]")
_MESH_GROUPS = re.compile(r"replica_groups=mesh\[([^\]]*)\][^{]*\{([^}]*)\}")
# The TPU compiler's name for an all-reduce fused with its slice.
_FUSED_REDUCE_SCATTER = "all-reduce-scatter"
# Where the TPU compiler writes a collective again that goes on beside products.
_GOES_ON = "async_collective_fusion"
_ENDS = re.compile(r"^\s*%async-collective-done[\w.-]* = .*?calls=%([\w.-]+)", re.MULTILINE)
# A collective between slices of TPUs.
_BETWEEN_SLICES = re.compile(
    r" = \((\w+)\[([\d,]*)\].* send\(.*_xla_megascale_target=\"?\{+([\d,]+|\d+->\d+)\}"
    r".*_xla_megascale_transfer_type=\"(\w+)\""
)
_PAIRS = re.compile(r"source_target_pairs=\{(?:\{\d+,\d+\},?)*\}")


@dataclass(frozen=True)
class Collective:
    """One collective of a compiled program.

    Attributes:
        kind: HLO's name: ``all-reduce``, ``all-gather``, ``reduce-scatter``, ``all-to-all``, ``collective-permute``.
        block_bytes: bytes of one device's block before it is divided, or after it is gathered.
        group: the number of devices in one group.
        operands: the number of tensors combined into it.
        count: its runs in one run of the program.
        between_slices: whether it goes over the network between slices of TPUs.
    """

    kind: str
    block_bytes: int
    group: int
    operands: int
    count: int
    between_slices: bool = False

    @property
    def interconnect_bytes(self) -> int:
        """The bytes that one device receives in one run of the program, as the planner counts."""
        n = self.group
        each = {
            "all-reduce": 2 * self.block_bytes * (n - 1) / n,
            "all-gather": self.block_bytes * (n - 1) / n,
            "reduce-scatter": self.block_bytes * (n - 1) / n,
            "all-to-all": self.block_bytes * (n - 1) / n,
            "collective-permute": self.block_bytes,
        }.get(self.kind, self.block_bytes)
        return round(each) * self.count


def collectives(text: str) -> list[Collective]:
    """Return the collectives of a compiled program.

    Returns:
        One entry per collective of more than one device, in the order of the text.
    """
    computations = _computations(text)
    counts = _counts(computations)
    again = set(_ENDS.findall(text)) | {name for name in computations if name.startswith(_GOES_ON)}
    found = []
    for name, lines in computations.items():
        if name in again:
            continue
        for line in lines:
            match = _LINE.match(line)
            if match and counts.get(name, 0):
                result, kind, start, rest = match.groups()
                collective = _collective(result, kind, start, rest, count=counts[name])
                if kind == "all-reduce" and name.startswith(_FUSED_REDUCE_SCATTER):
                    collective = replace(collective, kind="reduce-scatter")  # its block is the whole already
                found.append(collective)
            elif (match := _BETWEEN_SLICES.search(line)) and counts.get(name, 0):
                found.append(_between_slices(*match.groups(), count=counts[name]))
    # A group of one moves nothing.
    return [c for c in found if c.group > 1]


def total_interconnect_bytes(text: str) -> int:
    """Return the bytes that one device receives in one run of a compiled program."""
    return sum(c.interconnect_bytes for c in collectives(text))


def _computations(text: str) -> dict[str, list[str]]:
    result: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        match = _COMPUTATION.match(line)
        if match and " = " not in line.split("{")[0]:
            current = result.setdefault(("ENTRY " if line.startswith("ENTRY") else "") + match.group(1), [])
        elif line.strip() == "}":
            current = []
        else:
            current.append(line)
    return result


def _counts(computations: dict[str, list[str]]) -> dict[str, int]:
    """Return the number of runs of each computation in one run of the program."""
    counts: dict[str, int] = dict.fromkeys(computations, 0)
    todo = [(name, 1) for name in computations if name.startswith("ENTRY ")]
    while todo:
        name, times = todo.pop()
        counts[name] = counts.get(name, 0) + times
        for line in computations.get(name, ()):
            inner = times * (_trips(line, computations) if " while(" in line else 1)
            called = _CALL.findall(line)
            for branches in _BRANCHES.findall(line):
                called += [b.strip().lstrip("%") for b in branches.split(",")]
            todo += [(c, inner) for c in called if c in computations]
    return counts


def _trips(line: str, computations: dict[str, list[str]]) -> int:
    """Return the trip count of a loop: the compiler's figure, or the constant that the counter is compared with."""
    # The TPU compiler gives no figure.
    known = _TRIPS.search(line)
    if known:
        return int(known.group(1))
    condition = _CONDITION.search(line)
    body = computations.get(condition.group(1), []) if condition else []
    constants = {m.group(1): int(m.group(2)) for m in map(_CONSTANT.match, body) if m}
    limits = [
        constants[name]
        for text in body
        if " compare(" in text and "direction=LT" in text
        for name in re.findall(r"[\w.-]+", text.split(" compare(")[1].split(")")[0])
        if name in constants
    ]
    return max(limits, default=0) or 1


def _collective(result: str, kind: str, start: str | None, rest: str, *, count: int) -> Collective:
    listed = [(d, dims) for d, dims in _SHAPE.findall(result) if d in _ITEMSIZE]
    if start and len(listed) > 1:
        listed = [(d, dims) for d, dims in listed if dims or d != "u32"]  # the TPU compiler's semaphores
    shapes = [_nbytes(d, dims) for d, dims in listed]
    if start and kind != "all-reduce" and len(shapes) > 1:
        shapes = shapes[1:2] if kind == "collective-permute" else shapes[len(shapes) // 2 :]  # (operands, results)
    group = _group(kind, rest)
    block = sum(shapes)
    if kind == "reduce-scatter":
        block *= group
    return Collective(kind, block, group, max(len(shapes) if kind != "all-to-all" else 1, 1), count)


def _between_slices(dtype: str, dims: str, target: str, transfer: str, *, count: int) -> Collective:
    kind, group = transfer.lower().replace("_", "-"), len(re.split(",|->", target))
    # The operand is sent: of a gather one device's part.
    block = _nbytes(dtype, dims) * (group if kind == "all-gather" else 1)
    return Collective(kind, block, group, 1, count, between_slices=True)


def _group(kind: str, rest: str) -> int:
    if kind == "collective-permute":
        pairs = _PAIRS.search(rest)
        return 2 if pairs is None or re.search(r"\{(\d+),(?!\1\})\d+\}", pairs.group(0)) else 1
    iota = _IOTA_GROUPS.search(rest)
    if iota:
        return int(iota.group(2))
    mesh = _MESH_GROUPS.search(rest)  # mesh['axis_0'=2,'axis_1'=4] {'axis_1'}
    if mesh:
        sizes = {k: int(n) for k, n in re.findall(r"'(\w+)'=(\d+)", mesh.group(1))}
        parts = re.findall(r"'(\w+)'(?::\(\d+\)(\d+))?", mesh.group(2))
        return math.prod(int(part) if part else sizes[axis] for axis, part in parts)
    listed = _GROUPS.search(rest)
    return len(listed.group(1).split(",")) if listed else 1


def _nbytes(dtype: str, dims: str) -> int:
    return math.prod(int(d) for d in dims.split(",") if d) * _ITEMSIZE[dtype]
