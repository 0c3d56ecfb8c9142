"""Options of tables and stores: plain dicts in OneFlow's form, checked and parsed.

    tables = [make_table_options(make_uniform_initializer(-0.05, 0.05)) for _ in range(26)]
    store = make_cached_ssd_store_options(512, "/data/tables", capacity=2_000_000_000, size_factor=3)

A dict is checked where it is made, so that a wrong number is found before a run of days begins.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from sbpjax.errors import TableError

POLICIES = ("", "frequency", "age")


def make_uniform_initializer(low: float, high: float) -> dict[str, Any]:
    """Return the initializer that draws from [low, high)."""
    return {"type": "uniform", "low": low, "high": high}


def make_normal_initializer(mean: float, std: float) -> dict[str, Any]:
    """Return the initializer that draws normal numbers."""
    return {"type": "normal", "mean": mean, "std": std}


def make_trunc_normal_initializer(mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0) -> dict:
    """Return the initializer that draws normal numbers between a and b."""
    return {"type": "trunc_normal", "mean": mean, "std": std, "a": a, "b": b}


def make_constant_initializer(value: float) -> dict[str, Any]:
    """Return the initializer that fills with a value."""
    return {"type": "constant", "value": value}


def make_column_options(initializer: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a column of a table."""
    return {"initializer": initializer}


def make_table_options(param: Any) -> dict[str, Any]:
    """Return the options of a table: of an initializer, or of its columns' options."""
    columns = list(param) if isinstance(param, (list, tuple)) else [param]
    return {"columns": [c if "initializer" in c else make_column_options(c) for c in columns]}


def make_table(param: Any) -> dict[str, Any]:
    """Return the options of a table, under an older name; see `make_table_options`."""
    return make_table_options(param)


def make_device_mem_store_options(
    persistent_path: str | Sequence[str],
    capacity: int,
    size_factor: int = 1,
    storage_dim: int = -1,
    physical_block_size: int = 4096,
) -> dict[str, Any]:
    """Return the options of tables whose rows all lie in device memory.

    Args:
        persistent_path: where snapshots go; of several paths the first.
        capacity: the most rows of all tables together.
        size_factor: the length of a row with its optimizer state, in rows: 1 for SGD, 2 for Adagrad and momentum, 3 for
            Adam and Ftrl. 1 leaves it to the optimizer that comes.
        storage_dim: the same in numbers, if it is not -1.
        physical_block_size: accepted; files are read and written in large blocks.
    """
    return _store("device", persistent_path, capacity, size_factor, storage_dim)


def make_cached_host_mem_store_options(
    cache_budget_mb: int,
    persistent_path: str | Sequence[str],
    capacity: int,
    size_factor: int = 1,
    storage_dim: int = -1,
    physical_block_size: int = 4096,
    evict: str = "",
    evict_after: int = 0,
) -> dict[str, Any]:
    """Return the options of tables in host memory, with a cache of rows in device memory.

    Args:
        cache_budget_mb: the size of the cache on all devices together, in MiB, with the optimizer state of
            ``size_factor``.
        persistent_path: where snapshots go; of several paths the first.
        capacity: the most rows of all tables together.
        size_factor: as of `make_device_mem_store_options`.
        storage_dim: the same in numbers, if it is not -1.
        physical_block_size: accepted.
        evict: which rows make room for new keys when the capacity is reached: those that were looked up in the fewest
            steps (``"frequency"``) or the longest ago (``"age"``); "" for none: a new key is an error then.
        evict_after: drop rows that no lookup named in so many steps whenever room is made; 0 for no such limit.
    """
    found = _store("host", persistent_path, capacity, size_factor, storage_dim)
    return found | _cache_options(cache_budget_mb, evict, evict_after)


def make_cached_ssd_store_options(
    cache_budget_mb: int,
    persistent_path: str | Sequence[str],
    capacity: int | None = None,
    size_factor: int = 1,
    storage_dim: int = -1,
    physical_block_size: int = 4096,
    host_cache_budget_mb: int = 0,
    evict: str = "",
    evict_after: int = 0,
) -> dict[str, Any]:
    """Return the options of tables in files, with a cache of rows in device memory.

    The files are mapped into memory, so the system's page cache is the cache on the host.

    Args:
        cache_budget_mb: as of `make_cached_host_mem_store_options`.
        persistent_path: where the files and the snapshots go.
        capacity: the most rows of all tables together; None for as many as the disk holds.
        size_factor: as of `make_device_mem_store_options`.
        storage_dim: the same in numbers, if it is not -1.
        physical_block_size: accepted.
        host_cache_budget_mb: accepted.
        evict: as of `make_cached_host_mem_store_options`.
        evict_after: as of `make_cached_host_mem_store_options`.
    """
    found = _store("disk", persistent_path, 2**40 if capacity is None else capacity, size_factor, storage_dim)
    return found | _cache_options(cache_budget_mb, evict, evict_after)


def _store(kind: str, path: Any, capacity: int, size_factor: int, storage_dim: int) -> dict[str, Any]:
    operation = f"make_{'device_mem' if kind == 'device' else 'cached_host_mem' if kind == 'host' else 'cached_ssd'}"
    operation += "_store_options"
    if capacity < 1:
        raise TableError(operation, f"capacity={capacity}", "a store holds one row at least", "capacity=1_000_000")
    if size_factor < 1:
        rule = "a row is as long as itself and its optimizer state: 1 row for SGD, 2 for Adagrad, 3 for Adam and Ftrl"
        raise TableError(operation, f"size_factor={size_factor}", rule, "size_factor=3")
    first = path if isinstance(path, (str, os.PathLike)) else path[0]
    return {
        "store": kind,
        "persistent_path": os.fspath(first),
        "capacity": capacity,
        "size_factor": size_factor,
        "storage_dim": storage_dim,
    }


def _cache_options(budget_mb: int, evict: str, evict_after: int) -> dict[str, Any]:
    if budget_mb <= 0:
        rule = "the cache holds at least the rows of one step"
        raise TableError("cache_budget_mb", f"{budget_mb} MiB", rule, "cache_budget_mb=512")
    if evict not in POLICIES:
        rule = 'rows make room by "frequency", by "age", or not at all ("")'
        raise TableError("a store with eviction", f"evict={evict!r}", rule, 'evict="frequency"')
    return {"cache_budget_mb": budget_mb, "evict": evict, "evict_after": evict_after}


def cache_rows(options: dict[str, Any], row_bytes: int) -> int:
    """Return how many rows a cache has, one of them kept for padding.

    Args:
        options: of the store.
        row_bytes: the size of a row without optimizer state.
    """
    if options["store"] == "device":
        return options["capacity"] + 1
    held = int(options["cache_budget_mb"] * 2**20 // (row_bytes * options["size_factor"]))
    return max(2, min(held, options["capacity"] + 1))
