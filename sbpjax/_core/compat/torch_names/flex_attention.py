"""`torch.nn.attention.flex_attention`: absent: kernels generated from Python functions of scores."""

from __future__ import annotations

from .absent import absent

_WHY = "flex attention generates kernels for PyTorch"
_USE = "F.scaled_dot_product_attention(q, k, v, attn_mask=mask)"

BlockMask = absent("torch.nn.attention.flex_attention.BlockMask", _WHY, _USE)
AuxRequest = absent("torch.nn.attention.flex_attention.AuxRequest", _WHY, _USE)
create_block_mask = absent("torch.nn.attention.flex_attention.create_block_mask", _WHY, _USE)
create_mask = absent("torch.nn.attention.flex_attention.create_mask", _WHY, _USE)
flex_attention = absent("torch.nn.attention.flex_attention.flex_attention", _WHY, _USE)
or_masks = absent("torch.nn.attention.flex_attention.or_masks", _WHY, _USE)
and_masks = absent("torch.nn.attention.flex_attention.and_masks", _WHY, _USE)
_DEFAULT_SPARSE_BLOCK_SIZE = 128
