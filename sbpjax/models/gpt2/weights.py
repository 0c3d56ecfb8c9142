"""Weight names of GPT-2 in Hugging Face's files, where matrices are (in, out) and q, k and v are one."""

from __future__ import annotations

from sbpjax.models.weights import Part, Weights

from .config import GPT2Config
from .model import GPT2

WEIGHTS = Weights(
    config=GPT2Config,
    architectures={"GPT2LMHeadModel": GPT2},
    names={
        "token": "transformer.wte",
        "position": "transformer.wpe",
        "blocks.*.norm1": "transformer.h.*.ln_1",
        "blocks.*.attention.q": Part("transformer.h.*.attn.c_attn", 0, 3, transposed=True),
        "blocks.*.attention.k": Part("transformer.h.*.attn.c_attn", 1, 3, transposed=True),
        "blocks.*.attention.v": Part("transformer.h.*.attn.c_attn", 2, 3, transposed=True),
        "blocks.*.attention.out": Part("transformer.h.*.attn.c_proj", transposed=True),
        "blocks.*.norm2": "transformer.h.*.ln_2",
        "blocks.*.mlp.up": Part("transformer.h.*.mlp.c_fc", transposed=True),
        "blocks.*.mlp.down": Part("transformer.h.*.mlp.c_proj", transposed=True),
        "norm": "transformer.ln_f",
    },
    skipped=(r"lm_head\.weight", r".*\.attn\.(masked_)?bias"),  # the latter are constant masks
    copies={"lm_head.weight": "transformer.wte.weight"},
    older=((r"^(wte|wpe|h|ln_f)\.", r"transformer.\1."),),
)
