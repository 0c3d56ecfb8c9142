"""PyTorch's place for these names: transformers."""

from sbpjax import functions
from sbpjax.nn.transformer import Transformer as Transformer
from sbpjax.nn.transformer import TransformerDecoder as TransformerDecoder
from sbpjax.nn.transformer import TransformerDecoderLayer as TransformerDecoderLayer
from sbpjax.nn.transformer import TransformerEncoder as TransformerEncoder
from sbpjax.nn.transformer import TransformerEncoderLayer as TransformerEncoderLayer
from sbpjax.nn.transformer import _activation as _activation
from sbpjax.nn.transformer import _copies as _copies
from sbpjax.tensor import Tensor

_get_activation_fn, _get_clones = _activation, _copies


def _generate_square_subsequent_mask(sz: int, device=None, dtype=None) -> Tensor:
    """Return a mask to add: minus infinity above the diagonal."""
    return Transformer.generate_square_subsequent_mask(sz, device, dtype)


def _get_seq_len(src: Tensor, batch_first: bool) -> int | None:
    """Return the length of a sequence, or of those of a batch."""
    if src.ndim == 2:
        return src.shape[0]
    return src.shape[1 if batch_first else 0] if src.ndim == 3 else None


def _detect_is_causal_mask(mask: Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:
    """Return whether a mask is the causal one, if that is not said."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    causal = _generate_square_subsequent_mask(mask.shape[-1] if size is None else size, mask.device, mask.dtype)
    return mask.shape == causal.shape and functions.equal(mask, causal)
