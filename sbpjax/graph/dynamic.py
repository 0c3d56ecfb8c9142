"""Dynamic sizes: inputs are padded to the next of a few sizes (buckets), so that a few programs serve every size.

    Dynamic((64, 128), inputs={"input_ids": 1, "labels": (1, -100)}, outputs={"result['logits']": 1})

    input_ids (8, 50), labels (8, 50)    padded to (8, 64): 0 and -100 after the 50
    result['logits'] (8, 64, 1000)       sliced to (8, 50, 1000)

Values do not change where the program ignores what is padded: by an attention mask, by ``ignore_index`` in the loss.
`Dynamic.check` compares with the program of the size itself.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sbpjax._core.functions.table import table
from sbpjax._core.tensor import Tensor
from sbpjax._core.tracing import tree
from sbpjax._core.tracing.signature import argument_paths
from sbpjax.errors import GraphConfigError, GraphError

pad = table.find_function("nn.functional", "pad")
_TOLERANCE = 1e-4  # of the largest magnitude: sums of other lengths are rounded otherwise


@dataclass(frozen=True)
class Dynamic:
    """A size of some inputs that is padded to buckets; the argument ``dynamic`` of `nn.Graph` and `compile`.

    Args:
        buckets: the sizes that programs are compiled for, ascending.
        inputs: for each input, by the name of its parameter (``"batch['labels']"`` within a dict), the dim of that
            size, or a pair of it and the number to pad with; 0 by default.
        outputs: for each output that has the size, by its path (``"result"``, ``"result[0]"``, ``"result['logits']"``),
            the dim, which is sliced back to the inputs' size.
        check: at the first call of each bucket run the program of the size itself too, and compare the outputs. State
            is restored in between.

    Raises:
        GraphConfigError: the buckets do not ascend, or no input is named.

    Example:
        >>> lengths = Dynamic((64, 128, 256), inputs={"ids": 1, "mask": 1, "labels": (1, -100)})
        >>> step = flow.compile(step, state=(model, optimizer), dynamic=lengths)
    """

    buckets: Sequence[int]
    inputs: Mapping[str, int | tuple[int, float]]
    outputs: Mapping[str, int] = field(default_factory=dict)
    check: bool = False
    _checked: set[int] = field(default_factory=set, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        sizes = list(self.buckets)
        if not sizes or not all(isinstance(n, int) and n > 0 for n in sizes) or sizes != sorted(set(sizes)):
            raise GraphConfigError(
                "Dynamic",
                f"buckets={self.buckets!r}",
                "buckets are positive sizes that ascend",
                "Dynamic((64, 128), ...)",
            )
        if not self.inputs:
            raise GraphConfigError(
                "Dynamic", "no inputs", "the inputs of the size are named, with their dims", 'inputs={"input_ids": 1}'
            )

    def run(
        self, name: str, build: Callable, step: Callable, args: tuple, kwargs: dict, snapshot: Callable[[], Callable]
    ) -> Any:
        """Return the result of a step for padded arguments, with its outputs sliced.

        Args:
            name: of the program, for errors.
            build: the function whose parameters the arguments are.
            step: runs the program.
            args: the arguments.
            kwargs: those by name.
            snapshot: returns a function that restores the state as it is now.

        Raises:
            GraphError: the sizes of the inputs differ or have no bucket, an input or output has no such path or dim,
                or a checked output depends on what was padded.
        """
        padded, size, bucket = self._pad_inputs(name, build, args, kwargs)
        checks = self.check and size < bucket and bucket not in self._checked
        expected = restore = None
        if checks:
            restore = snapshot()
            expected = step(*args, **kwargs)
            restore()
            restore = snapshot()
        result = step(*padded[0], **padded[1])
        result = result if size == bucket else self._slice_outputs(name, result, size, bucket)
        if checks:
            try:
                self._compare(name, result, expected, size, bucket)
            except GraphError:
                restore()  # type: ignore[misc]  # a failed call changes nothing
                raise
            self._checked.add(bucket)
        return result

    def _pad_inputs(self, name: str, build: Callable, args: tuple, kwargs: dict) -> tuple[tuple, int, int]:
        leaves, structure = tree.flatten((args, kwargs))
        places = {path: i for i, path in enumerate(argument_paths(structure, build))}
        found: dict[str, int] = {}
        for path, how in self.inputs.items():
            found[path] = _size(name, "an input", path, leaves, places, how[0] if isinstance(how, tuple) else how)
        size = next(iter(found.values()))
        sizes = ", ".join(f"{path}: {n}" for path, n in found.items())
        if set(found.values()) != {size}:
            raise GraphError(
                name, sizes, "the inputs of one Dynamic have one size", "name the inputs of another size in no Dynamic"
            )
        bucket = next((n for n in self.buckets if n >= size), None)
        if bucket is None:
            raise GraphError(
                name,
                sizes,
                f"the largest bucket is {max(self.buckets)}",
                f"cut the inputs, or add a bucket: {(*self.buckets, size)}",
            )
        if size < bucket:
            for path, how in self.inputs.items():
                dim, value = how if isinstance(how, tuple) else (how, 0)
                leaves[places[path]] = _pad(leaves[places[path]], dim, bucket - size, value)
        return tree.unflatten(structure, leaves), size, bucket

    def _slice_outputs(self, name: str, result: Any, size: int, bucket: int) -> Any:
        leaves, structure = tree.flatten(result)
        places = {path: i for i, path in enumerate(tree.paths(structure, "result"))}
        for path, dim in self.outputs.items():
            found = _size(name, "an output", path, leaves, places, dim)
            if found != bucket:
                raise GraphError(
                    name,
                    f"{path} of size {found} in dim {dim}",
                    f"a named output has the size of the bucket, {bucket}, in its dim",
                    "correct the dim in outputs, or leave the output out",
                )
            tensor = leaves[places[path]]
            leaves[places[path]] = _with_layout_of(tensor, tensor.narrow(dim, 0, size))
        return tree.unflatten(structure, leaves)

    def _compare(self, name: str, result: Any, expected: Any, size: int, bucket: int) -> None:
        """Raise if an output differs from that of the inputs without padding."""
        (got, structure), (wanted, _) = tree.flatten(result), tree.flatten(expected)
        for path, x, y in zip(tree.paths(structure, "result"), got, wanted, strict=True):
            if not isinstance(x, Tensor):
                continue
            if x.shape != y.shape:
                raise GraphError(
                    name,
                    f"{path} of shape {list(x.shape)}, and {list(y.shape)} without padding from {size} to {bucket}",
                    "an output that has the size is sliced back",
                    f'outputs={{"{path}": dim}}',
                )
            a, b = x.detach().numpy().astype(np.float64), y.detach().numpy().astype(np.float64)
            difference = np.abs(a - b).max(initial=0.0)
            scale = np.abs(b).max(initial=0.0)
            if not difference <= _TOLERANCE * scale:
                raise GraphError(
                    name,
                    f"{path} differs by {difference:.1e}, where the largest value is {scale:.1e}, "
                    f"for inputs padded from {size} to {bucket}",
                    f"padding changes no output by more than {_TOLERANCE:g} of its largest value",
                    "mask it: an attention mask, ignore_index in the loss, sums over valid positions only",
                )


def _size(name: str, kind: str, path: str, leaves: list, places: dict[str, int], dim: int) -> int:
    """Return the size of a named tensor's dim."""
    if path not in places or not isinstance(leaves[places[path]], Tensor):
        known = ", ".join(p for p, i in places.items() if isinstance(leaves[i], Tensor))
        raise GraphError(name, f"{kind} {path!r}", f"Dynamic names tensors: {known}", "correct the name")
    shape = leaves[places[path]].shape
    if not -len(shape) <= dim < len(shape):
        raise GraphError(name, f"{path} of shape {list(shape)}", f"Dynamic names its dim {dim}", "correct the dim")
    return shape[dim]


def _pad(x: Tensor, dim: int, count: int, value: float) -> Tensor:
    """Return a tensor with ``count`` elements of a value added after those of a dim."""
    after = x.ndim - 1 - dim % x.ndim
    return _with_layout_of(x, pad(x, [0, 0] * after + [0, count], "constant", value))


def _with_layout_of(x: Tensor, made: Tensor) -> Tensor:
    """Return a tensor with the sbp of another, so that the signature of a program does not depend on the size."""
    return made if x.layout is None else made.to_global(x.placement, x.sbp)


def snapshot_of(owners: Sequence) -> Callable[[], None]:
    """Return a function that restores modules and optimizers, or a graph, and tensors as they are now."""
    held = [copy.deepcopy(o.state_dict()) if hasattr(o, "state_dict") else o.detach().clone() for o in owners]

    def restore() -> None:
        for owner, state in zip(owners, held, strict=True):
            if hasattr(owner, "load_state_dict"):
                owner.load_state_dict(state)
            else:
                owner.detach().copy_(state)

    return restore
