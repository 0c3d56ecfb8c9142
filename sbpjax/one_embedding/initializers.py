"""Initial values of rows: a function of (seed, table, key) alone.

So a row is the same whichever process makes it, in whichever step it is first seen, and however large the caches are:
element j of a row is drawn from the hash of (seed, table, key, j), as counter-based random numbers are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from sbpjax.errors import TableError

from .key_map import hash_keys, mix_bits

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_KINDS = ("uniform", "normal", "trunc_normal", "constant")


class RowInitializer:
    """Makes the first values of rows.

    Args:
        tables: the options of each table.
        columns: the sizes of the columns of a row.
        default: the initializer of columns without one; zeros by default.
        seed: of all of them.

    Raises:
        TableError: an initializer is of a kind that is not known.
    """

    def __init__(
        self, tables: Sequence[dict], columns: Sequence[int], default: dict[str, Any] | None, seed: int
    ) -> None:
        self._width = sum(columns)
        self._salt = mix_bits(np.array([seed], np.int64).view(np.uint64) + _GOLDEN)
        self._parts: list[list[tuple[int, int, dict]]] = []
        for options in tables:
            given, parts, start = options.get("columns") or [{}], [], 0
            for i, size in enumerate(columns):
                column = given[min(i, len(given) - 1)]
                initializer = column.get("initializer") or default or {"type": "constant"}
                if initializer.get("type") not in _KINDS:
                    seen, rule = f"type={initializer.get('type')!r}", f"one of {', '.join(_KINDS)}"
                    raise TableError("an initializer of one_embedding", seen, rule, "make_normal_initializer(0.0, 0.1)")
                parts.append((start, start + size, initializer))
                start += size
            self._parts.append(parts)

    def rows(self, tables: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Return the first values of the rows of keys, ``(N, width)`` float32."""
        made = np.empty((len(keys), self._width), np.float32)
        for table in np.unique(tables):
            at = np.flatnonzero(tables == table)
            with np.errstate(over="ignore"):
                base = mix_bits(hash_keys(tables[at], keys[at]) ^ self._salt)
            for start, stop, initializer in self._parts[table]:
                made[at, start:stop] = _draw_rows(base, start, stop, initializer)
        return made


def _draw_rows(base: np.ndarray, start: int, stop: int, initializer: dict[str, Any]) -> Any:
    kind = initializer["type"]
    if kind == "constant":
        return initializer.get("value", 0.0)
    with np.errstate(over="ignore"):
        number = np.arange(start + 1, stop + 1, dtype=np.uint64) * _GOLDEN
        bits = mix_bits(base[:, None] + number[None])
    u = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53  # in (0, 1)
    if kind == "uniform":
        low, high = initializer["low"], initializer["high"]
        # Rounding to float32 may reach the upper end, which does not belong to it.
        top = np.nextafter(np.float32(high), np.float32(low), dtype=np.float32)
        return np.minimum(low + u * (high - low), top) if high > low else low
    mean, std = initializer["mean"], initializer["std"]
    if kind == "trunc_normal":
        lower, upper = ndtr((initializer["a"] - mean) / std), ndtr((initializer["b"] - mean) / std)
        return np.clip(mean + std * ndtri(lower + u * (upper - lower)), initializer["a"], initializer["b"])
    return mean + std * ndtri(u)
