"""`oneflow.one_embedding`: embedding tables of a recommender, as one dense table that may be split over devices.

    table = one_embedding.MultiTableEmbedding(
        "sparse", 16, flow.float32, flow.int64,
        tables=[one_embedding.make_table_options(one_embedding.make_normal_initializer(0.0, 0.1)) for _ in range(26)],
        store_options=one_embedding.make_device_mem_store_options("/data/tables", capacity=1_000_000),
    ).to_global(placement, flow.sbp.split(0))          # 1 / n of the rows per device
    vectors = table(ids)                               # ids: (B, 26), one column per table → (B, 26, 16)

OneFlow keeps a hash map of 64-bit keys in a store of its own (device, host, SSD). Here a table has ``capacity`` rows in
device memory and its keys are 0 to ``capacity - 1``; hash other keys into that range (``ids % capacity``). Stores on
SSD, and readers and writers of their files, are not here. Gradients are of rows: an optimizer with sparse updates reads
and writes the rows that a batch names and no others, and `Optimizer` makes updates sparse where it can.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from sbpjax import functions
from sbpjax.data.save_load import load, save
from sbpjax.errors import AbsentError, OpValueError
from sbpjax.functions import nn as F
from sbpjax.nn import init
from sbpjax.nn.module import Module as Module
from sbpjax.nn.parameter import Parameter as Parameter
from sbpjax.optim.ftrl import Ftrl as Ftrl
from sbpjax.sbp.algebra import broadcast
from sbpjax.tensor import Tensor
from sbpjax.tensor.creation import arange, empty
from sbpjax.tensor.generator import Generator
from sbpjax.tensor.tape.grad_mode import no_grad


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
    """Return the options of tables in device memory.

    Args:
        persistent_path: where snapshots go.
        capacity: the rows of all tables together.
        size_factor: accepted; optimizers keep their own state.
        storage_dim: accepted.
        physical_block_size: accepted.
    """
    path = persistent_path if isinstance(persistent_path, (str, os.PathLike)) else persistent_path[0]
    return {"store": "device", "persistent_path": os.fspath(path), "capacity": capacity}


def make_cached_host_mem_store_options(
    cache_budget_mb: int,
    persistent_path: str | Sequence[str],
    capacity: int,
    size_factor: int = 1,
    storage_dim: int = -1,
    physical_block_size: int = 4096,
) -> dict[str, Any]:
    """Return the options of tables in device memory: there is no cache in front of the host's; see above."""
    return make_device_mem_store_options(persistent_path, capacity)


def _no_store(asked: str) -> AbsentError:
    rule = "tables lie in device memory; sbpjax has no store of its own on SSD"
    fix = "make_device_mem_store_options(path, capacity), split over devices with to_global(placement, sbp.split(0))"
    return AbsentError(f"one_embedding.{asked}", "a store on SSD", rule, fix)


def make_cached_ssd_store_options(
    cache_budget_mb: int,
    persistent_path: str | Sequence[str],
    capacity: int | None = None,
    size_factor: int = 1,
    storage_dim: int = -1,
    physical_block_size: int = 4096,
    host_cache_budget_mb: int = 0,
) -> dict[str, Any]:
    """Raise an AbsentError: there is no store on SSD."""
    raise _no_store("make_cached_ssd_store_options(...)")


def make_persistent_table_reader(
    paths: Any, snapshot_name: str, key_type: Any, value_type: Any, storage_dim: int, physical_block_size: int = 4096
) -> Any:
    """Raise an AbsentError: there is no store on SSD; `sbpjax.load` reads snapshots."""
    raise _no_store("make_persistent_table_reader(...)")


def make_persistent_table_writer(
    paths: Any, snapshot_name: str, key_type: Any, value_type: Any, storage_dim: int, physical_block_size: int = 4096
) -> Any:
    """Raise an AbsentError: there is no store on SSD; `sbpjax.save` writes snapshots."""
    raise _no_store("make_persistent_table_writer(...)")


class Embedding(Module):
    """Tables of vectors in one dense weight, ``(capacity, embedding_dim)``.

    Args:
        name: of the tables; part of a snapshot's path.
        embedding_dim: the length of a vector, or of each of its columns.
        dtype: of the vectors.
        key_type: of the ids.
        tables: the options of each table; their rows share the capacity equally.
        store_options: of `make_device_mem_store_options`.
        default_initializer: for tables that say none.
        padding_idx: an id whose vector is zero and stays so.
        seed: of the initial values.
    """

    weight: Parameter

    def __init__(
        self,
        name: str,
        embedding_dim: int | Sequence[int],
        dtype: Any,
        key_type: Any,
        tables: Sequence[dict[str, Any]],
        store_options: dict[str, Any],
        default_initializer: dict[str, Any] | None = None,
        padding_idx: int | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.name, self.key_type, self.padding_idx = name, key_type, padding_idx
        self.columns = [embedding_dim] if isinstance(embedding_dim, int) else list(embedding_dim)
        self.num_tables = len(tables)
        self.rows = store_options["capacity"] // max(1, self.num_tables)
        if not tables or self.rows < 1:
            seen = f"{len(tables)} tables, capacity {store_options['capacity']}"
            raise OpValueError(f"Embedding({name!r})", seen, "every table needs a row", "a larger capacity")
        self._persistent_path = store_options["persistent_path"]
        generator = Generator().manual_seed(seed)
        with no_grad():
            parts = [self._first_values(options, default_initializer, dtype, generator) for options in tables]
            self.weight = Parameter(functions.cat(parts))

    def _first_values(self, options: dict, default: dict | None, dtype: Any, generator: Any) -> Tensor:
        given = options.get("columns", [{}])
        columns = []
        for i, size in enumerate(self.columns):
            column = given[min(i, len(given) - 1)]
            values = empty(self.rows, size, dtype=dtype)
            columns.append(_filled(values, column.get("initializer") or default or {"type": "constant"}, generator))
        made = functions.cat(columns, 1)
        if self.padding_idx is not None:
            made[self.padding_idx] = 0
        return made

    def forward(self, ids: Tensor, table_ids: Tensor | None = None) -> Tensor:
        """Return the vectors of ids.

        Args:
            ids: keys; with several tables and no `table_ids`, the last dim has one per table.
            table_ids: which table each id is of.

        Returns:
            ``(*ids.shape, embedding_dim)``.
        """
        if self.num_tables > 1:
            if table_ids is None:
                if ids.shape[-1] != self.num_tables:
                    seen = f"ids {list(ids.shape)}"
                    rule = f"without table_ids, the last dim has one id for each of the {self.num_tables} tables"
                    raise OpValueError(f"{self.name}(ids)", seen, rule, "ids of (batch, tables)")
                table_ids = arange(self.num_tables)
                if ids.is_global:
                    table_ids = table_ids.to_global(ids.placement, [broadcast] * len(ids.sbp))
            rows = ids + table_ids * self.rows
        else:
            rows = ids
        vectors = F.embedding(rows, self.weight, sparse=True)
        if self.padding_idx is not None:
            vectors = vectors * ids.ne(self.padding_idx).unsqueeze(-1).to(vectors.dtype)
        return vectors

    def save_snapshot(self, snapshot_name: str) -> None:
        """Write the tables under the store's path."""
        save({"weight": self.weight}, os.path.join(self._persistent_path, self.name, snapshot_name))

    def load_snapshot(self, snapshot_name: str) -> None:
        """Read the tables that `save_snapshot` wrote."""
        path = os.path.join(self._persistent_path, self.name, snapshot_name)
        state = load(path, global_src_rank=0) if self.weight.is_global else load(path)
        self.load_state_dict(state)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"{self.name!r}, {self.num_tables} tables of {self.rows} rows of {sum(self.columns)}"


class MultiTableEmbedding(Embedding):
    """Tables whose vectors are of one column; see `Embedding` for the arguments."""


class MultiTableMultiColumnEmbedding(Embedding):
    """Tables whose vectors have several columns, each with an initializer of its own; see `Embedding`."""


def _filled(values: Tensor, initializer: dict[str, Any], generator: Any) -> Tensor:
    kind = initializer["type"]
    if kind == "uniform":
        return values.uniform_(initializer["low"], initializer["high"], generator=generator)
    if kind == "normal":
        return values.normal_(initializer["mean"], initializer["std"], generator=generator)
    if kind == "trunc_normal":
        options = {name: initializer[name] for name in ("mean", "std", "a", "b")}
        return init.trunc_normal_(values, **options, generator=generator)
    if kind == "constant":
        return values.fill_(initializer.get("value", 0.0))
    kinds = "uniform, normal, trunc_normal, constant"
    raise OpValueError("an initializer of one_embedding", f"type={kind!r}", f"one of {kinds}", "normal")


class Optimizer:
    """An optimizer that updates embeddings along with the rest.

    Args:
        optimizer: the optimizer; parameters of the embeddings that it lacks are added to it.
        embeddings: the embeddings.
    """

    def __init__(self, optimizer: Any, embeddings: Sequence[Embedding]) -> None:
        self.optimizer, self.embeddings = optimizer, list(embeddings)
        known = {id(p) for group in optimizer.param_groups for p in group["params"]}
        added = [p for e in embeddings for p in e.parameters() if id(p) not in known]
        if added:
            optimizer.add_param_group({"params": added, "is_sparse": optimizer.support_sparse})

    def step(self, closure: Any = None) -> Any:
        """Update all parameters."""
        return self.optimizer.step(closure)

    def zero_grad(self, set_to_none: bool | None = None) -> None:
        """Set all gradients to zero, or drop them."""
        self.optimizer.zero_grad(set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """Return the optimizer's state."""
        return self.optimizer.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the optimizer's state."""
        self.optimizer.load_state_dict(state_dict)
