"""What the TPU compiler says of a program before it makes machine code of it.

The training step of a GPT keeps libtpu's compiler busy for 100 s of CPU time. After three of them the program is
optimised and scheduled and every buffer has its place; the rest is machine code, which nobody asks for here:

    text, held = after_passes(lowered)       # in a process of its own, which then ends by `os._exit`
    seconds(text)                            # about what `optimal_seconds` will be

The compiler's `optimal_seconds` comes with the machine code. It is a sum over the scheduled instructions, each at the
peak of products or of the chip's memory, whichever takes longer: 379 Tflop/s and 2.35 TB/s on v5p (docs/auto.md).
`seconds` adds up the same from the text:

    GPT found on v5p:4x4x4           9.75 ms     `optimal_seconds` 9.73
    GPT dp on v5p:2x2x2             12.76                         12.92
    MLP found on v5p:2x2x2           3.92                          3.79

A copy into the chip's fast memory, of an operand that is fetched ahead, counts as four times its bytes, exactly so in
programs of one or five of them; three stand with its beginning, one with its end.

Lookups in large tables and sums into them are priced by the compiler in a way that the text does not show, so programs
that live from these (wide & deep) have to be compiled to the end.
"""

from __future__ import annotations

import glob
import math
import os
import re
import tempfile
import threading
import time
from dataclasses import dataclass, field

ITEMS = {"pred": 1, "s4": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4,
         "s64": 8, "u64": 8, "f64": 8}  # fmt: skip
FLOPS, MEMORY = 379e12, 2.35e12  # per second, of v5p
_SHAPE = re.compile(r"(\w+)\[([\d,]*)\](?:\{([^}]*)\})?")
# Names for what is there already; what is begun asynchronously counts where it begins.
_FREE = frozenset(
    "parameter constant bitcast tuple get-tuple-element optimization-barrier after-all partition-id replica-id "
    "slice-done all-reduce-done all-gather-done async-done async-update collective-permute-done call-done "
    "dynamic-slice-done dynamic-update-slice-done send-done recv-done".split()
)


@dataclass
class Instruction:
    """One line of a program's text.

    Attributes:
        name: its name.
        type: the shapes of its result, with their layouts.
        op: what it does.
        operands: the names of its operands.
        inside: what stands between its parentheses.
        rest: what follows them.
        is_root: whether it is the result of its computation.
    """

    name: str
    type: str
    op: str
    operands: list[str] = field(repr=False)
    inside: str = field(repr=False)
    rest: str = field(repr=False)
    is_root: bool = False


def after_passes(lowered, limit: float = 600.0) -> tuple[str, int]:
    """Return a lowered program's text after the compiler's passes, and the bytes that a device holds in it.

    The compiler goes on in a thread and cannot be stopped: call `os._exit` when all is said.

    Raises:
        TimeoutError: the passes took longer than ``limit`` seconds.
    """
    folder = tempfile.mkdtemp()
    options = {"xla_dump_to": folder, "xla_dump_hlo_as_text": True}
    failed: list[BaseException] = []

    def work() -> None:
        try:
            lowered.compile(compiler_options=options)
        except BaseException as error:  # it is raised below, in the caller's thread
            failed.append(error)

    threading.Thread(target=work, daemon=True).start()
    began = time.monotonic()
    while time.monotonic() - began < limit:
        if failed:
            raise failed[0]
        time.sleep(0.3)
        reports = glob.glob(f"{folder}/*memory-usage-report.txt")
        if reports:
            time.sleep(1.0)  # it is written to its end
            report = max(reports, key=os.path.getsize)
            with open(report) as file:
                held = int(re.search(r"color=0\)\s*Total bytes: (\d+)", file.read()).group(1))
            with open(report.replace("-memory-usage-report", "")) as file:
                return file.read(), held
    raise TimeoutError(f"the compiler's passes took longer than {limit} s")


def seconds(text: str, once: bool = False) -> float:
    """Return the time of a program's instructions, one after the other.

    Args:
        text: the program's text.
        once: count the body of a loop once, as `optimal_seconds` does, and not once per turn.
    """
    computations, entry = parse(text)
    return _seconds(computations[entry], computations, once)


def _seconds(program: list[Instruction], computations: dict, once: bool) -> float:
    types = {i.name: i.type for i in program}
    total = 0.0
    for i in program:
        if i.op == "while":
            body = re.search(r"body=%?([\w.-]+)", i.rest).group(1)
            total += (1 if once else _turns(i, computations)) * _seconds(computations[body], computations, once)
        elif i.op == "copy-done":  # of a copy into the chip's fast memory and its end four blocks are counted
            total += nbytes(i.type) / MEMORY
        elif i.op not in _FREE and 'custom_call_target="AllocateBuffer"' not in i.rest:  # a place, nothing in it
            work = _flops(i, types, computations) / FLOPS
            total += max(work, _touched(i, types, computations) / MEMORY)
    return total


def _turns(loop: Instruction, computations: dict) -> int:
    """Return how often a loop turns: the compiler's word, or the constant that its condition compares with."""
    if known := re.search(r'known_trip_count":\{"n":"(\d+)"', loop.rest):
        return int(known.group(1))
    condition = computations[re.search(r"condition=%?([\w.-]+)", loop.rest).group(1)]
    constants = {i.name: int(i.inside) for i in condition if i.op == "constant" and i.inside.isdigit()}
    compared = [i for i in condition if i.op == "compare" and "direction=LT" in i.rest]
    return max((constants[o] for i in compared for o in i.operands if o in constants), default=1)


def parse(text: str) -> tuple[dict[str, list[Instruction]], str]:
    """Return the computations of a program by name, and the name of its entry."""
    computations: dict[str, list[Instruction]] = {}
    entry, current = "", []
    for line in text.splitlines():
        if line.startswith(("%", "ENTRY")) and line.rstrip().endswith("{"):
            name = re.match(r"(?:ENTRY )?%?([\w.-]+)", line).group(1)
            entry = name if line.startswith("ENTRY") else entry
            current = computations[name] = []
        elif found := re.match(r"\s+(ROOT )?%?([\w.-]+) = (.*)$", line):
            current.append(_instruction(found.group(2), found.group(3), bool(found.group(1))))
    return computations, entry


def _instruction(name: str, text: str, is_root: bool) -> Instruction:
    end = _closing(text) + 1 if text.startswith("(") else text.index(" ")
    kind, text = text[:end], text[end:].strip()
    op, _, _ = text.partition("(")
    text = text[len(op) :]
    end = _closing(text) + 1
    return Instruction(name, kind, op, re.findall(r"%([\w.-]+)", text[:end]), text[1 : end - 1], text[end:], is_root)


def _closing(text: str) -> int:
    """Return where the parenthesis closes with which a text begins."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return place
    return len(text) - 1


def nbytes(kind: str) -> int:
    """Return the bytes of all arrays of a type, in whole tiles."""
    return sum(_array_bytes(*found) for found in _SHAPE.findall(kind) if found[0] in ITEMS)


def _array_bytes(dtype: str, dims: str, layout: str) -> int:
    sizes = _numbers(dims)
    if tiles := re.search(r"T\(([\d,]+)\)", layout):
        order = _numbers(layout.partition(":")[0])
        for dim, tile in zip(order, reversed(_numbers(tiles.group(1))), strict=False):
            sizes[dim] = -(-sizes[dim] // tile) * tile
    return math.prod(sizes) * ITEMS[dtype]


def _numbers(text: str) -> list[int]:
    return [int(n) for n in text.split(",") if n]


def _called(i: Instruction, computations: dict) -> list[Instruction]:
    found = re.search(r"calls=%?([\w.-]+)", i.rest)
    return computations.get(found.group(1), []) if found else []


def _flops(i: Instruction, types: dict, computations: dict) -> float:
    """Return the flops of an instruction's products; the compiler writes products as convolutions."""
    if i.op == "convolution":
        labels = re.search(r"dim_labels=\w+_(\w+)->", i.rest).group(1)
        result, kernel = (_numbers(_SHAPE.search(t).group(2)) for t in (i.type, types[i.operands[1]]))
        return 2.0 * math.prod(result) * kernel[labels.index("i")] * _window(i.rest)
    called = _called(i, computations)
    inner = {c.name: c.type for c in called}
    return sum(_flops(c, inner, computations) for c in called)


def _window(rest: str) -> int:
    """Return how many places of a window are summed over; a dim that is dilated or padded stands for a batch dim."""
    found = re.search(r"window=\{size=([\dx]+)([^}]*)\}", rest)
    if found is None:
        return 1
    sizes = [int(n) for n in found.group(1).split("x")]
    for word, plain in (("pad", "0_0"), ("stride", "1"), ("lhs_dilate", "1"), ("rhs_dilate", "1")):
        if given := re.search(rf"\b{word}=(\S+)", found.group(2)):
            sizes = [n if of == plain else 1 for n, of in zip(sizes, given.group(1).split("x"), strict=True)]
    return math.prod(sizes)


def _touched(i: Instruction, types: dict, computations: dict) -> int:
    """Return the bytes that an instruction reads and writes: of an operand that is only cut, the cuts."""
    if i.op == "dynamic-update-slice":
        return 2 * nbytes(types[i.operands[1]])
    called = _called(i, computations)
    if not called:
        return nbytes(i.type) + sum(nbytes(types[o]) for o in i.operands)
    total = sum(
        _read(called, c.name, nbytes(types[i.operands[int(c.inside)]]), computations)
        for c in called
        if c.op == "parameter"
    )
    root = next(c for c in called if c.is_root)
    by_name = {c.name: c for c in called}
    parts = [by_name[o] for o in root.operands] if root.op == "tuple" else [root]
    return total + sum(_written(part, by_name) for part in parts)


def _written(part: Instruction, by_name: dict[str, Instruction]) -> int:
    """Return the bytes that a fusion writes of one of its results: of an update in place, what is updated."""
    made = part
    while made.op == "bitcast":
        made = by_name[made.operands[0]]
    return nbytes(by_name[made.operands[1]].type if made.op == "dynamic-update-slice" else part.type)


def _read(called: list[Instruction], name: str, whole: int, computations: dict) -> int:
    """Return the bytes that a fusion reads of a value of ``whole`` bytes: its cuts, where it is only cut."""
    total = 0
    for reader in called:
        if name not in reader.operands:
            continue
        if reader.op in ("slice", "dynamic-slice") and reader.operands[0] == name:
            total += nbytes(reader.type)
        elif reader.op == "fusion":
            inner = _called(reader, computations)
            given = {int(c.inside): c.name for c in inner if c.op == "parameter"}
            places = [k for k, o in enumerate(reader.operands) if o == name]
            total += sum(_read(inner, given[k], whole, computations) for k in places)
        elif reader.op == "bitcast":
            total += _read(called, reader.name, whole, computations)
        elif reader.op != "dynamic-update-slice" or reader.operands[0] != name:
            return whole
    return min(total, whole)
