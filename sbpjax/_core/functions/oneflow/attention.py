"""OneFlow's fused attention for layouts such as ``"BM(HK)"``; one op, so it is planned as a whole."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from sbpjax._core.ops.attention import attention
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax.errors import OpValueError

_PACKED = {"H3K": 3, "H2K": 2}
_PLACES = {"query": {3: 0}, "key": {3: 1, 2: 0}, "value": {3: 2, 2: 1}}


def _heads(x: Tensor, layout: str, size: int | None, role: str) -> Tensor:
    """Return a tensor in the layout named as ``(B, H, M, K)``.

    In a layout, B is the batch, M the place in the sequence, H the head, K its width; names in brackets are one dim.
    """
    operation = f"fused_multi_head_attention_inference_v2({role}_layout={layout!r})"
    inner = layout[layout.find("(") + 1 : -1] if layout.endswith(")") else ""
    parts = 1
    if inner in ("HK", *_PACKED):
        if size is None:
            rule = "a layout with heads and widths in one dim needs query_head_size"
            raise OpValueError(operation, f"shape {list(x.shape)}", rule, "query_head_size=64")
        parts = _PACKED.get(inner, 1)
        sizes = (-1, parts, size) if parts > 1 else (-1, size)
        x = x.unflatten(-1, sizes)
        letters = layout[: layout.find("(")] + ("HPK" if parts > 1 else "HK")
        if parts > 1:
            place = _PLACES[role].get(parts)
            if place is None:
                rule = f"{role} is not in a tensor of {parts} parts"
                raise OpValueError(operation, layout, rule, f'{role}_layout="BM(HK)"')
            x = x.select(x.ndim - 2, place)
            letters = letters.replace("P", "")
    else:
        letters = layout
    if sorted(letters) != ["B", "H", "K", "M"]:
        rule = "layouts are BM(HK), MB(HK), BMHK, BHMK, MBHK, BM(H2K), MB(H2K), BM(H3K), MB(H3K)"
        raise OpValueError(operation, f"shape {list(x.shape)}", rule, 'query_layout="BM(HK)"')
    return x.permute(*[letters.index(c) for c in "BHMK"])


def fused_multi_head_attention_inference_v2(
    *,
    query: Tensor,
    query_layout: str,
    query_head_size: int | None = None,
    query_seq_start: Tensor | None = None,
    query_max_seq_len: int | None = None,
    key: Tensor | None = None,
    key_layout: str | None = None,
    key_seq_start: Tensor | None = None,
    key_seq_len: Tensor | None = None,
    key_max_seq_len: int | None = None,
    value: Tensor | None = None,
    value_layout: str | None = None,
    attn_bias: Tensor | None = None,
    output_layout: str = "BM(HK)",
    scale: float | None = None,
    causal: bool | None = None,
    attn_mask_type: str | None = None,
    causal_diagonal_offset: int = 0,
) -> Tensor:
    """Return attention of tensors in layouts such as ``"BM(HK)"``: batch, place, and heads with widths in one dim.

    Args:
        query: the queries; with ``"BM(H3K)"`` keys and values too.
        query_layout: the layout of the queries.
        query_head_size: the width of a head, where the layout does not show it.
        query_seq_start: not supported: sequences of several lengths in one dim.
        query_max_seq_len: likewise.
        key: the keys; by default in the queries' tensor.
        key_layout: their layout; by default that of the queries.
        key_seq_start: not supported, as `query_seq_start`.
        key_seq_len: ``(B,)``, how many keys of each batch count; all by default.
        key_max_seq_len: ignored: known from the tensors.
        value: the values; by default in the keys' tensor.
        value_layout: their layout; by default that of the keys.
        attn_bias: added to the scores.
        output_layout: ``"BM(HK)"`` or ``"MB(HK)"``.
        scale: factor of the scores, by default 1 / sqrt(K).
        causal: as ``attn_mask_type="causal_from_top_left"``.
        attn_mask_type: ``"none"``, ``"causal_from_top_left"`` or ``"causal_from_bottom_right"``.
        causal_diagonal_offset: how many keys more a query may read.
    """
    operation = "fused_multi_head_attention_inference_v2(...)"
    if query_seq_start is not None or key_seq_start is not None:
        rule = "sequences of several lengths have a batch dim here"
        raise OpValueError(operation, "query_seq_start or key_seq_start", rule, "pad them, and give key_seq_len")
    if output_layout not in ("BM(HK)", "MB(HK)"):
        rule = 'output_layout is "BM(HK)" or "MB(HK)"'
        raise OpValueError(operation, f"output_layout={output_layout!r}", rule, 'output_layout="BM(HK)"')
    key_layout = query_layout if key_layout is None else key_layout
    value_layout = key_layout if value_layout is None else value_layout
    key = query if key is None else key
    value = key if value is None else value
    q = _heads(query, query_layout, query_head_size, "query")
    size = q.shape[-1]
    k = _heads(key, key_layout, size, "key")
    v = _heads(value, value_layout, size, "value")
    mask_type = attn_mask_type or ("causal_from_top_left" if causal else "none")
    offsets = {"none": None, "causal_from_top_left": 0, "causal_from_bottom_right": k.shape[2] - q.shape[2]}
    if mask_type not in offsets:
        rule = f"attn_mask_type is one of {', '.join(offsets)}"
        raise OpValueError(operation, f"attn_mask_type={mask_type!r}", rule, 'attn_mask_type="none"')
    offset = offsets[mask_type]
    return dispatch.apply(
        _attend,
        q,
        k,
        v,
        attn_bias,
        key_seq_len,
        scale=scale,
        diagonal=None if offset is None else offset + causal_diagonal_offset,
        batch_first=output_layout[0] == "B",
    )


def _attend(q, k, v, bias=None, lengths=None, /, scale=None, diagonal=None, batch_first=True):
    t, s = q.shape[2], k.shape[2]
    keep = None
    if diagonal is not None:
        keep = (jnp.arange(s, dtype=np.int32)[None] <= jnp.arange(t, dtype=np.int32)[:, None] + diagonal)[None, None]
    if lengths is not None:
        valid = (jnp.arange(s, dtype=lengths.dtype)[None] < lengths[:, None])[:, None, None]
        keep = valid if keep is None else keep & valid
    mask = bias
    if keep is not None:
        low = jnp.asarray(-np.inf, q.dtype)
        added = jnp.where(keep, jnp.zeros((), q.dtype), low)
        mask = added if bias is None else bias + added
    out = attention.scaled_dot_product_attention(q, k, v, mask, scale=scale)  # (B, H, M, K)
    out = lax.transpose(out, (0, 2, 1, 3) if batch_first else (2, 0, 1, 3))
    return lax.reshape(out, (*out.shape[:2], out.shape[2] * out.shape[3]))
