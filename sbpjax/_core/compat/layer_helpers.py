"""Private helpers of PyTorch's layers that model libraries import from `nn.modules`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

from sbpjax._core import functions
from sbpjax._core.tensor import Tensor
from sbpjax.nn.layers.transformer import Transformer


def _ntuple(n: int) -> Callable[[Any], tuple]:
    def spread(x: Any) -> tuple:
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))

    return spread


_single, _pair, _triple, _quadruple = (_ntuple(n) for n in (1, 2, 3, 4))


def _reverse_repeat_tuple(t: Iterable, n: int) -> tuple:
    """Return the elements from the last to the first, each `n` times."""
    return tuple(x for x in reversed(tuple(t)) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix such as ``"module."`` off the names of a state, in place."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    for key in list(metadata or ()):
        if key and (key == prefix.rstrip(".") or key.startswith(prefix)):
            metadata[key[len(prefix) :]] = metadata.pop(key)


def _addindent(s_: str, numSpaces: int) -> str:
    """Return a text with all lines but the first indented by so many spaces."""
    return s_.replace("\n", "\n" + " " * numSpaces)


def _forward_unimplemented(self, *input) -> None:
    """Raise NotImplementedError: the module has no forward."""
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """Return the slices of a tensor along a dim in another order."""
    return tensor.index_select(dim, permutation)


def _generate_square_subsequent_mask(sz: int, device=None, dtype=None) -> Tensor:
    """Return a mask to add: minus infinity above the diagonal."""
    return Transformer.generate_square_subsequent_mask(sz, device, dtype)


def _get_seq_len(src: Tensor, batch_first: bool) -> int | None:
    """Return the length of a sequence, or of those of a batch."""
    if src.ndim == 2:
        return src.shape[0]
    return src.shape[1 if batch_first else 0] if src.ndim == 3 else None


def _detect_is_causal_mask(mask: Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:
    """Return whether a mask is the causal one, if that is not given."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    causal = _generate_square_subsequent_mask(mask.shape[-1] if size is None else size, mask.device, mask.dtype)
    return mask.shape == causal.shape and functions.equal(mask, causal)
