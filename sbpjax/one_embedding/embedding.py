"""`Embedding`: tables of vectors by 64-bit key, larger than the devices' memory.

    step k:   ids ──▶ rows of the store ──▶ slots of the cache     (host, before the compiled step)
                      new keys are made     changed rows leave for the store, missing ones come
              slots ──▶ vectors ──▶ … ──▶ gradient of rows ──▶ lazy update of the cache      (devices)

The cache is a parameter ``(slots, width)``; to a graph, an optimizer or a planner it is an ordinary table whose
gradients are of rows. Only `Cache` knows what lies in it.

`Optimizer`: OneFlow's optimizer of embeddings, around an ordinary one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import TableError
from sbpjax.graph import host_input
from sbpjax.nn import functional as F

from .cache import Cache
from .device_rows import host
from .initializers import RowInitializer
from .options import cache_rows
from .prefetch import announce_batches
from .snapshots import Snapshots
from .store import RowStore

_SNAPSHOT = "snapshot"


class Embedding(nn.Module):
    """Tables of vectors by key, each made when it is first looked up.

    Args:
        name: of the tables; part of a snapshot's path.
        embedding_dim: the length of a vector, or of each of its columns.
        dtype: of the vectors.
        key_type: of the ids: int32 or int64, any value.
        tables: the options of each table; each has keys of its own.
        store_options: where rows lie: ``make_device_mem_store_options``, ``make_cached_host_mem_store_options`` or
            ``make_cached_ssd_store_options``.
        default_initializer: for tables without one.
        padding_idx: an id whose vector is zero and stays so.
        seed: of the first values, which depend on (seed, table, key) only.

    Raises:
        TableError: no table, a store or an initializer that is not known, or a dtype that is none of floating point.

    Example:
        >>> store = make_cached_host_mem_store_options(16, "/tmp/tables", capacity=1_000_000)
        >>> tables = [make_table_options(make_uniform_initializer(-0.1, 0.1)) for _ in range(2)]
        >>> table = MultiTableEmbedding("doc", 4, flow.float32, flow.int64, tables, store)
        >>> table(flow.tensor([[7, -5], [7, 2**62]])).shape
        sbpjax.Size([2, 2, 4])
    """

    weight: nn.Parameter

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
        _check(self, dtype, store_options)
        width = sum(self.columns)
        row_bytes = width * dtype.itemsize
        self._store_kind = store_options["store"]
        kind, folder = store_options["store"], store_options["persistent_path"]
        count = cache_rows(store_options, row_bytes)
        evict = store_options.get("evict", ""), store_options.get("evict_after", 0)
        if any(evict):  # rows in the cache stay in the store, and others have to be able to go
            count = min(count, store_options["capacity"] // 2 + 1)
        initial = RowInitializer(tables, self.columns, default_initializer, seed)
        files = folder if kind == "disk" else None
        store = RowStore(name, width, dtype.np, initial, store_options["capacity"], files, *evict)
        self.weight = nn.Parameter(flow.zeros(count, width, dtype=dtype))
        factor = max(store_options["size_factor"], store_options["storage_dim"] // width)
        # What changes in every step stands there: of a module's own plain attributes a program is remade.
        self._cache = Cache(name, self.weight, store, self.num_tables, key_type, padding_idx, factor)
        self._snapshots = Snapshots(self._cache, folder, self.columns, seed)

    # -- lookups ---------------------------------------------------------------------------------------------------

    def forward(self, ids: flow.Tensor, table_ids: flow.Tensor | None = None) -> flow.Tensor:
        """Return the vectors of ids.

        Args:
            ids: keys; with several tables and no `table_ids`, the last dim has one per table.
            table_ids: which table each id is of, of the shape of `ids`.

        Returns:
            ``(*ids.shape, width)``, with the sbp of the ids.

        Raises:
            TableError: ids of a wrong shape or dtype, a table or a key out of range, too many new keys for the store,
                or more different keys in a step than the cache has rows.
        """
        if ids.dtype.is_floating_point or ids.dtype.is_complex or ids.dtype == flow.bool:
            raise TableError(f"{self.name}(ids)", f"ids of {ids.dtype.name}", "keys are integers", "ids.to(flow.int64)")
        if table_ids is not None:
            if tuple(table_ids.shape) != tuple(ids.shape):
                seen = f"ids {list(ids.shape)}, table_ids {list(table_ids.shape)}"
                raise TableError(f"{self.name}(ids, table_ids)", seen, "one table per id", "table_ids like ids")
            requested, keys = "given", flow.stack([ids.to(flow.int64), table_ids.to(flow.int64)])
        else:
            requested, keys = "columns" if self.num_tables > 1 else "one", ids
            if requested == "columns" and (not ids.ndim or ids.shape[-1] != self.num_tables):
                rule = f"without table_ids, the last dim has one id for each of the {self.num_tables} tables"
                raise TableError(f"{self.name}(ids)", f"ids {list(ids.shape)}", rule, "ids of (batch, tables)")
        writes = self.training and flow.is_grad_enabled() and self.weight.requires_grad
        slots = host_input(self._cache, keys, (requested, writes))
        vectors = F.embedding(slots[0] if table_ids is not None else slots, self.weight, sparse=True)
        if self.padding_idx is not None:
            vectors = vectors * ids.ne(self.padding_idx).unsqueeze(-1).to(vectors.dtype)
        return vectors

    # -- the cache -------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write all rows that steps have changed from the cache into the store; every process calls it."""
        with self._cache.lock:
            self._cache.flush()

    @property
    def hit_rate(self) -> float:
        """The part of the ids so far whose rows were in this process's cache; NaN before the first lookup."""
        return self._cache.hit_rate

    @property
    def num_rows(self) -> int:
        """How many rows this process has, of all tables."""
        return len(self._cache.store)

    def prefetch(self, loader: Iterable, keys: Callable[[Any], Any]) -> Iterator:
        """Yield a loader's batches, and find the rows of the next one on a thread while the step of this one runs.

        On several processes it yields the batches as they come: who owns a key is asked in the step.

        Args:
            loader: an iterable of batches.
            keys: returns the ids of a batch as ``forward`` will get them, or a list of those of several lookups.

        Example:
            >>> for ids, labels in table.prefetch(loader, keys=lambda batch: batch[0]):
            ...     step(ids, labels)
        """
        writes = lambda: self.training and self.weight.requires_grad  # noqa: E731
        return announce_batches(self._cache, loader, keys, writes)

    # -- snapshots -------------------------------------------------------------------------------------------------

    def save_snapshot(self, snapshot_name: str) -> None:
        """Write all rows, with the optimizer's state of them, as a directory under the store's path.

        It is complete, or not there: a run that is killed meanwhile, or a full disk, leaves what was there before.
        Every process calls it.

        Raises:
            TableError: the disk is full, or the name is none of a directory.
        """
        with self._cache.lock:
            self._cache.begin()
            self._cache.flush()
            self._snapshots.save(snapshot_name)

    def load_snapshot(self, snapshot_name: str, states: bool = True) -> None:
        """Read the rows that `save_snapshot` wrote, on any number of processes; every process calls it.

        Args:
            snapshot_name: which.
            states: read the optimizer's state as well.

        Raises:
            TableError: there is none, it is damaged, or of other tables; the rows stay as they are then.
        """
        with self._cache.lock:
            self._snapshots.take(self._snapshots.open_snapshot(snapshot_name), states)

    def snapshot_names(self) -> list[str]:
        """Return the names of the snapshots under the store's path, in the order in which they were made."""
        return self._snapshots.names()

    def prune_snapshots(self, keep: int = 2) -> None:
        """Remove all but the newest snapshots; call it when the checkpoint that names the newest one is complete."""
        self._snapshots.prune(keep)

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        name = self._snapshots.next_name()
        self.save_snapshot(name)
        destination[prefix + _SNAPSHOT] = self._encode_name(name)

    def _encode_name(self, name: str) -> flow.Tensor:
        made = flow.tensor(np.frombuffer(name.encode(), np.uint8).copy())
        if not self.weight.is_global:
            return made
        sbp = [flow.sbp.broadcast] * len(self.weight.placement.hierarchy)
        return made.to_global(self.weight.placement, sbp)

    def _load_from_state_dict(
        self,
        state_dict: dict,
        prefix: str,
        local_metadata: dict,
        strict: bool,
        missing_keys: list,
        unexpected_keys: list,
        error_msgs: list,
    ) -> None:
        key = prefix + _SNAPSHOT
        unexpected_keys += [k for k in state_dict if k.startswith(prefix) and k != key]
        if key not in state_dict:
            missing_keys.append(key)
            return
        value = state_dict[key]
        if isinstance(value, flow.Tensor):
            if value.is_global and self.weight.is_global:  # one that lies with the process that read the file
                sbp = [flow.sbp.broadcast] * len(self.weight.placement.hierarchy)
                value = value.to_global(self.weight.placement, sbp)
            value = host(value)
        name = bytes(value.astype(np.uint8)).decode(errors="replace")
        try:
            read = self._snapshots.open_snapshot(name)
        except TableError as error:
            error_msgs.append(f"{key}: {error}")
            return
        write = lambda: self._snapshots.take(read, True)  # noqa: E731
        writes = getattr(error_msgs, "writes", None)
        writes.append(write) if writes is not None else write()

    def extra_repr(self) -> str:
        """Return the sizes."""
        kind = self._store_kind
        return (
            f"{self.name!r}, {self.num_tables} tables of vectors of {sum(self.columns)}, store on {kind}, "
            f"cache of {len(self.weight) - 1} rows"
        )


class MultiTableEmbedding(Embedding):
    """Tables whose vectors are of one column; see `Embedding` for the arguments."""


class MultiTableMultiColumnEmbedding(Embedding):
    """Tables whose vectors have several columns, each with an initializer of its own; see `Embedding`."""


def _check(table: Embedding, dtype: Any, options: dict[str, Any]) -> None:
    requested = f"Embedding({table.name!r})"
    if not table.num_tables:
        raise TableError(requested, "no table", "ids are of a table", "tables=[make_table_options(initializer)]")
    if any(not isinstance(c, int) or c < 1 for c in table.columns):
        raise TableError(
            requested, f"embedding_dim={table.columns}", "a column has one number at least", "embedding_dim=16"
        )
    if not dtype.is_floating_point:
        raise TableError(requested, f"dtype={dtype}", "vectors are of floating point", "dtype=flow.float32")
    if table.key_type not in (flow.int32, flow.int64):
        raise TableError(requested, f"key_type={table.key_type}", "keys are int32 or int64", "key_type=flow.int64")
    if "store" not in options:
        raise TableError(
            requested, f"store_options={sorted(options)}", "one of the make_*_store_options", "see its docs"
        )
    if "/" in table.name or table.name in ("", ".", ".."):
        raise TableError(requested, f"name={table.name!r}", "the name is that of a directory", 'name="tables"')


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
            optimizer.add_param_group({"params": added})

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
