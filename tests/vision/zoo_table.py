"""Write the pages of families in `docs/reference/image_models/` from one table: parameters, multiply-adds, commands.

    python -m tests.vision.zoo_table [family ...]

Multiply-adds are those of the products and convolutions in the program of a forward of one image; activations are the
elements that these give.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import prod
from pathlib import Path

import jax
import numpy as np

import sbpjax as flow
from sbpjax import nn
from sbpjax.auto import flops

PAGES = Path(__file__).parents[2] / "docs" / "reference" / "image_models"
HEAD = "| model | image | parameters, M | multiply-adds, G | activations, M |\n|---|---|---|---|---|\n"


@dataclass(frozen=True)
class Family:
    """A page.

    Attributes:
        title: of the page.
        output: what the family is, in a sentence or two.
        patterns: shell patterns of its names.
        shown: the member that examples are of.
        small: options that make it small enough to be run by a test.
        size: of its images then.
        fields: options worth knowing, in words.
        parallel: how its training is divided, as overrides, and in words.
    """

    title: str
    output: str
    patterns: tuple[str, ...]
    shown: str
    small: str
    size: int
    fields: str
    parallel: tuple[str, str] = ("trainer.parallel.data=8", "each device gets a part of the batch")


FAMILIES = {
    "resnet": Family(
        "ResNet",
        "Residual blocks in four stages. Each stage has half the height and width of the previous one, and twice its "
        "channels. Variants: ResNeXt (grouped convolutions), wide, squeeze-and-excite, and D (a deep stem).",
        ("resnet*", "resnext*", "wide_resnet*", "seresne*"),
        "resnet50",
        "depths=(1, 1, 1, 1), width=16",
        32,
        "`depths`, `width`, `groups`, `squeeze`, `deep_stem`, `drop_path_rate`; `output_stride=8` for feature maps of "
        "higher resolution",
    ),
    "res2net": Family(
        "Res2Net",
        "ResNet's bottlenecks with the middle convolution divided into groups of channels; each group also receives "
        "the output of the previous one.",
        ("res2ne*",),
        "res2net50_26w_4s",
        "depths=(1, 1, 1, 1), width=16",
        32,
        "those of [ResNet](resnet.md), and `scale`, the number of groups",
    ),
    "efficientnet": Family(
        "EfficientNet",
        "Inverted bottlenecks; b0 to b7 scale width, depth and image size together. Version 2 is included. Models "
        "named `tf_*` use TensorFlow's padding.",
        ("efficientnet*", "tf_efficientnet*"),
        "efficientnet_b0",
        "",
        32,
        "`drop_rate`, `drop_path_rate`",
    ),
    "rexnet": Family(
        "ReXNet",
        "Inverted bottlenecks whose number of channels grows linearly from block to block.",
        ("rexnet*",),
        "rexnet_100",
        "",
        32,
        "`drop_rate`, `drop_path_rate`",
    ),
    "convnext": Family(
        "ConvNeXt",
        "A convolutional network that adopts design choices of vision transformers. Version 2 adds global response "
        "normalisation.",
        ("convnext*",),
        "convnext_tiny",
        "depths=(1, 1, 1, 1), widths=(8, 16, 24, 32)",
        64,
        "`depths`, `widths`, `drop_path_rate`",
    ),
    "vit": Family(
        "ViT",
        "A transformer whose tokens are the patches of an image. Variants classify from a class token or from the mean "
        "of all tokens; some add register tokens.",
        ("vit_*",),
        "vit_small_patch16_224",
        "image_size=32, num_hidden_layers=1",
        32,
        "`image_size`, `patch_size`, `hidden_size`, `num_hidden_layers`, `num_attention_heads`, `drop_path_rate`",
        (
            "trainer.parallel.fsdp=4 trainer.parallel.tensor=2",
            "matrices and the batch are divided over four devices, heads and hidden units over two",
        ),
    ),
    "deit": Family(
        "DeiT",
        "ViT trained on ImageNet alone. Variants: distilled (a second token learns the predictions of a teacher) and "
        "DeiT III (scaled residual branches).",
        ("deit*",),
        "deit_tiny_distilled_patch16_224",
        "image_size=32, num_hidden_layers=1",
        32,
        "those of [ViT](vit.md), and `distillation`, `layer_scale`",
        (
            "trainer.parallel.fsdp=4 trainer.parallel.tensor=2",
            "matrices and the batch are divided over four devices, heads and hidden units over two",
        ),
    ),
    "swin": Family(
        "Swin",
        "A transformer in four stages, with attention within windows that shift by half a window in every second "
        "block. Version 2 uses cosine attention.",
        ("swin*",),
        "swin_tiny_patch4_window7_224",
        "image_size=32, window=4, width=16, heads=(1, 2, 4, 8), depths=(1, 1, 1, 1)",
        32,
        "`image_size`, `window`, `depths`, `heads`, `width`, `drop_path_rate`",
    ),
    "iresnet": Family(
        "IResNet",
        "Residual networks for face recognition. The output is an embedding of length `num_classes`, trained with a "
        "margin softmax.",
        ("iresnet*",),
        "iresnet50",
        "depths=(1, 1, 1, 1), width=8, image_size=32",
        32,
        "`depths`, `width`, `image_size`",
    ),
}


def members(family: Family) -> list[str]:
    """Return the names of a family."""
    return [n for n in flow.vision.list_models() if any(fnmatchcase(n, pattern) for pattern in family.patterns)]


def counts(jaxpr) -> tuple[int, int]:
    """Return the multiply-adds of the products and convolutions of a program, and how many elements these give."""
    work = elements = 0
    for eqn in jaxpr.eqns:
        for value in eqn.params.values():
            for inner in value if isinstance(value, (list, tuple)) else [value]:
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    work, elements = (a + b for a, b in zip((work, elements), counts(inner), strict=True))
        if eqn.primitive.name in ("dot_general", "conv_general_dilated", "convolution"):
            work += int(flops(eqn)) // 2
            elements += prod(eqn.outvars[0].aval.shape)
    return work, elements


def image_size(name: str) -> int:
    """Return the side of the images that a model takes."""
    return getattr(flow.vision.models.model_config(name), "image_size", 224)


def row(name: str) -> str:
    """Return the row of a model."""
    size = image_size(name)
    with flow.abstract():
        model = flow.vision.create_model(name).eval()
        apply, _ = nn.to_pure(model)

    def shapes(named):
        return {
            key: jax.ShapeDtypeStruct(tuple(x.shape), np.dtype(str(x.dtype).rpartition(".")[2])) for key, x in named
        }

    def forward(parameters, buffers, images):
        return apply(parameters, images, buffers=buffers)

    given = shapes(model.named_parameters()), shapes(model.named_buffers())
    program = jax.make_jaxpr(forward)(*given, jax.ShapeDtypeStruct((1, 3, size, size), np.float32))
    count = sum(prod(x.shape) for x in given[0].values())
    work, elements = counts(program.jaxpr)
    return f"| `{name}` | {size} | {count / 1e6:.1f} | {work / 1e9:.2f} | {elements / 1e6:.1f} |"


def command(family: Family) -> str:
    """Return the command that trains a family's member on photos."""
    size = image_size(family.shown)
    own = "" if size == 224 else f" size={size}"
    return f"python -m sbpjax.train examples.vision.folder model={family.shown} root=photos classes=10{own}"


def page(family: Family) -> str:
    """Return the page of a family."""
    output_text = "an embedding of each face" if family.shown.startswith("iresnet") else "one score per class"
    lines = [
        f"# {family.title}\n",
        f"{family.output}\n",
        f"{HEAD}{chr(10).join(map(row, members(family)))}\n",
        "Multiply-adds and activations are for one image; activations count the outputs of matrix products and "
        "convolutions.\n",
        "```python\nimport sbpjax as flow\nfrom sbpjax import vision\n",
        f'options = dict({family.small})\nmodel = vision.create_model("{family.shown}", num_classes=10, **options)'
        if family.small
        else f'model = vision.create_model("{family.shown}", num_classes=10)',
        f"outputs = model.eval()(flow.randn(1, 3, {family.size}, {family.size}))  # {output_text}",
        "assert outputs.shape == (1, 10)\n```\n",
        f"Options of `create_model`: {family.fields}. [Use a vision model](../../how_to/vision.md) describes the other "
        "options.\n",
    ]
    if family.shown.startswith("iresnet"):
        lines += [
            "## Train a model\n",
            "`examples/faces` trains a face network with a margin softmax over many people, divided over the devices: "
            "see [Classify millions of classes](../../how_to/large_softmax.md).\n",
            "```bash\npython -m examples.faces.train\n```\n",
        ]
    else:
        overrides, words = family.parallel
        lines += [
            "## Train a model\n",
            "Put photos into one folder per class, `photos/train/CLASS/*.jpg` and `photos/val/CLASS/*.jpg`. In the "
            "source folder of the project, run:\n",
            f"```bash\n{command(family)}\n```\n",
            "A run takes 15,000 steps with 64 images each; `steps=1000 batch=32` makes it shorter. [Train on your "
            "photos](../../how_to/vision.md#train-on-your-photos) explains evaluation, resuming and prediction.\n",
            f"On eight devices, add `{overrides}`: {words}. `checkpoint={family.shown}.safetensors` starts from timm's "
            "weights. `examples/vision` contains complete runs.\n",
        ]
    return "\n".join(lines)


def index() -> str:
    """Return the page that lists the families."""
    rows = [f"| [{one.title}]({name}.md) | {len(members(one))} | {one.output} |" for name, one in FAMILIES.items()]
    return (
        "# Image models\n\n"
        f"`sbpjax.vision.create_model` accepts {len(flow.vision.list_models())} model names. timm's files load "
        "unchanged, and `vision.models.save_checkpoint` writes files that timm can read. Parameters have timm's names, "
        "except in ViT and DeiT, which have [names of their own](../../how_to/vision_tuning.md#groups-by-name). "
        "`python -m tests.vision.zoo_table` writes these pages.\n\n"
        "| family | models | |\n|---|---|---|\n" + "\n".join(rows) + "\n\n"
        "Detection and segmentation models are classes: `SSD300`, `RetinaNet` and `FasterRCNN` in "
        "`sbpjax.vision.models.detection`, `DeepLabV3` and `FCN` in `sbpjax.vision.models.segmentation`; see "
        "[Load and augment images, and detect objects in them](../../how_to/vision_data.md).\n"
    )


def main() -> None:
    """Write the pages."""
    PAGES.mkdir(exist_ok=True)
    (PAGES / "index.md").write_text(index())
    for name in sys.argv[1:] or FAMILIES:
        (PAGES / f"{name}.md").write_text(page(FAMILIES[name]))
        print(name)


if __name__ == "__main__":
    main()
