"""The notation of the recorded facts: sbps as ``S0.B``, locals as ``2x3:0,1,2,3,4,5``."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path

import numpy as np

from sbpjax.sbp import algebra

DATA = Path(__file__).parent / "data"


@cache
def load(name: str) -> dict:
    """Return a file of facts."""
    return json.loads((DATA / f"{name}.json").read_text())


def codes_of(text: str) -> tuple[int, ...]:
    """Return the codes of ``S0.B``."""
    return tuple({"B": algebra.B, "P": algebra.P}.get(t) if t in "BP" else int(t[1:]) for t in text.split("."))


def sbp_of(text: str) -> tuple:
    """Return the nd-sbp of ``S0.B``."""
    return algebra.to_sbp(codes_of(text))


def text_of(codes) -> str:
    """Return ``S0.B`` of codes."""
    return ".".join(algebra.name(c) for c in codes)


def block_of(text: str, dtype=np.float32) -> np.ndarray:
    """Return the array of ``2x3:0,1,2,3,4,5``."""
    shape, _, values = text.partition(":")
    shape = tuple(int(n) for n in shape.split("x")) if shape else ()
    flat = [float(v) for v in values.split(",")] if values else []
    assert len(flat) == math.prod(shape)
    return np.asarray(flat).reshape(shape).astype(dtype)
