"""Weight names of ViT in the files of Hugging Face and timm."""

from __future__ import annotations

import os

import sbpjax as flow
from sbpjax.checkpoint import open_safetensors
from sbpjax.errors import CheckpointError
from sbpjax.models.weights import Part, Weights

from .config import ViTConfig
from .model import ViT

WEIGHTS = Weights(
    config=ViTConfig,
    architectures={"ViTForImageClassification": ViT},
    names={
        "patches": "vit.embeddings.patch_embeddings.projection",
        "first": "vit.embeddings.cls_token",
        "positions": "vit.embeddings.position_embeddings",
        "blocks.*.attention.q": "vit.encoder.layer.*.attention.attention.query",
        "blocks.*.attention.k": "vit.encoder.layer.*.attention.attention.key",
        "blocks.*.attention.v": "vit.encoder.layer.*.attention.attention.value",
        "blocks.*.attention.out": "vit.encoder.layer.*.attention.output.dense",
        "blocks.*.norm1": "vit.encoder.layer.*.layernorm_before",
        "blocks.*.mlp.up": "vit.encoder.layer.*.intermediate.dense",
        "blocks.*.mlp.down": "vit.encoder.layer.*.output.dense",
        "blocks.*.norm2": "vit.encoder.layer.*.layernorm_after",
        "norm": "vit.layernorm",
        "head": "classifier",
    },
)
# One matrix has the rows of queries, keys and values.
TIMM = Weights(
    config=ViTConfig,
    architectures={"VisionTransformer": ViT},
    names={
        "patches": "patch_embed.proj",
        "first": "cls_token",
        "positions": "pos_embed",
        "blocks.*.attention.q": Part("blocks.*.attn.qkv", 0, 3, dim=0),
        "blocks.*.attention.k": Part("blocks.*.attn.qkv", 1, 3, dim=0),
        "blocks.*.attention.v": Part("blocks.*.attn.qkv", 2, 3, dim=0),
        "blocks.*.attention.out": "blocks.*.attn.proj",
        "blocks.*.norm1": "blocks.*.norm1",
        "blocks.*.mlp.up": "blocks.*.mlp.fc1",
        "blocks.*.mlp.down": "blocks.*.mlp.fc2",
        "blocks.*.norm2": "blocks.*.norm2",
        "norm": "norm",
        "head": "head",
    },
)


def load_timm(model: ViT, path: str | os.PathLike) -> ViT:
    """Read the weights of a file of timm's into a model, in whatever layout it is.

    Args:
        model: of the file's size; timm's norms have ``layer_norm_eps=1e-6``.
        path: a file of safetensors, or a folder with one, such as ``model.safetensors`` of ``vit_base_patch16_224``.

    Returns:
        The model.

    Raises:
        CheckpointError: the file has other tensors than the model; nothing is read then.

    Example:
        >>> config = ViTConfig(image_size=224, patch_size=16, num_labels=1000, layer_norm_eps=1e-6)
        >>> model = load_timm(ViT(config), "vit_base_patch16_224")  # doctest: +SKIP
    """
    arrays = open_safetensors(path)
    own = {name: (TIMM.part(name), parameter) for name, parameter in model.named_parameters()}
    wrong = []
    for name, (part, parameter) in own.items():
        assert part is not None, name  # the table has all of them
        found = None if part.name not in arrays else tuple(arrays[part.name].shape)
        if found != part.shape(tuple(parameter.shape)):
            wrong.append(f"{part.name} {found}, for {part.shape(tuple(parameter.shape))}")
    used = {part.name for part, _ in own.values() if part is not None}
    wrong += [f"{name}, which the model has not" for name in arrays if name not in used]
    if wrong:
        shown = "; ".join(wrong[:5]) + (f"; and {len(wrong) - 5} more" if len(wrong) > 5 else "")
        rule = f"the file has the {len(own)} parameters of the model, in their shapes"
        raise CheckpointError(f"load_timm(model, {os.fspath(path)!r})", shown, rule, "another ViTConfig")
    for part, parameter in own.values():
        assert part is not None
        options = {"placement": parameter.placement, "sbp": parameter.sbp} if parameter.is_global else {}
        parameter.data = flow.tensor(part.read(arrays[part.name]), dtype=parameter.dtype, **options)
    return model
