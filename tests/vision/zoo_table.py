"""Write the table of families in `docs/how_to/vision.md`: parameters, and multiply-adds of one image.

    python -m tests.vision.zoo_table

Multiply-adds are those of the products and convolutions in the program of a forward, element by element.
"""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np

import sbpjax as flow
from sbpjax import nn
from sbpjax.planner.prices.cost import flops

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "vision.md"
BEGIN, END = "| model | image | parameters, M | multiply-adds, G |\n|---|---|---|---|\n", "\n\n"
SHOWN = """resnet18 resnet50 resnet50d resnext50_32x4d wide_resnet50_2 seresnet50 res2net50_26w_4s res2net50_48w_2s
    densenet121 mobilenetv3_small_100 mobilenetv3_large_100 efficientnet_b0 efficientnet_b4 efficientnetv2_s rexnet_100
    regnetx_032 regnety_032 convnext_tiny convnextv2_atto convnextv2_tiny vit_tiny_patch16_224 vit_small_patch32_384
    vit_base_patch16_224 deit_small_distilled_patch16_224 deit3_small_patch16_224 swin_tiny_patch4_window7_224
    swinv2_tiny_window8_256 mixer_b16_224 iresnet50 iresnet101""".split()


def multiply_adds(jaxpr) -> int:
    """Return how many multiply-adds the products and convolutions of a program are."""
    total = 0
    for eqn in jaxpr.eqns:
        for value in eqn.params.values():
            for inner in value if isinstance(value, (list, tuple)) else [value]:
                inner = getattr(inner, "jaxpr", inner)
                total += multiply_adds(inner) if hasattr(inner, "eqns") else 0
        total += int(flops(eqn)) // 2
    return total


def row(name: str) -> str:
    """Return the row of a model."""
    model = flow.vision.create_model(name).eval()
    size = getattr(model.config, "image_size", 224)
    apply, parameters = nn.to_pure(model)
    program = jax.make_jaxpr(apply)(parameters, np.zeros((1, 3, size, size), np.float32))
    count = sum(p.numel() for p in model.parameters())
    return f"| `{name}` | {size} | {count / 1e6:.1f} | {multiply_adds(program.jaxpr) / 1e9:.2f} |"


def main() -> None:
    """Write the table into the page."""
    before, rest = PAGE.read_text().split(BEGIN)
    rest = rest[rest.index(END) :] if END in rest else "\n"
    PAGE.write_text(before + BEGIN + "\n".join(map(row, SHOWN)) + rest)


if __name__ == "__main__":
    main()
