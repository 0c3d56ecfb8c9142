"""`ImageModel`: base class of the image classifiers: feature maps per stage, logits, checks of a batch."""

from __future__ import annotations

from dataclasses import Field, dataclass, fields
from typing import Any

import numpy as np

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import ConfigError, DataError, OpTypeError, OpValueError
from sbpjax.nn import functional as F
from sbpjax.vision.models import label_checks

# Which values a field takes, by how its type is written.
_KINDS: dict[str, tuple[type, ...]] = {
    "int": (int, np.integer),
    "float": (int, float, np.number),
    "bool": (bool, np.bool_),
    "tuple[int, ...]": (tuple, list),
}


@dataclass(frozen=True, kw_only=True)
class ImageConfig:
    """Base of the configurations of all families.

    Attributes:
        num_classes: the number of classes; 0 for a model that ends with the pooled features.
        in_chans: channels of images.

    Raises:
        ConfigError: a field is out of range.
    """

    num_classes: int = 1000
    in_chans: int = 3

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not _fits(value, str(field.type)):
                fix = f"{field.name}={_guess_value(value, field)!r}"
                self.refuse(f"{field.name}={value!r}", f"{field.name} is of type {field.type}", fix)
            if field.name.endswith("_rate") and not 0 <= value < 1:
                self.refuse(f"{field.name}={value!r}", "a rate is from 0 to below 1", f"{field.name}=0.1")
        if self.num_classes < 0:
            self.refuse(f"num_classes={self.num_classes}", "num_classes is 0 or more", "num_classes=1000")
        if self.in_chans < 1:
            self.refuse(f"in_chans={self.in_chans}", "an image has one channel or more", "in_chans=3")

    def refuse(self, seen: str, rule: str, fix: str) -> None:
        """Raise the error of a configuration that contradicts itself.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(f"{type(self).__name__}(...)", seen, rule, fix)


def _fits(value: Any, kind: str) -> bool:
    """Return whether a value is of a type; True where the type is none of `_KINDS`."""
    kinds = _KINDS.get(kind)
    return kinds is None or (isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds))


def _guess_value(value: Any, field: Field) -> Any:
    """Return what may have been meant by a value of a wrong type: "10" is 10."""
    try:
        return {"int": int, "float": float}[str(field.type)](value)
    except (KeyError, TypeError, ValueError):
        return field.default


def checked_classes(num_classes: int) -> None:
    """Raise unless this is the number of classes of a new classifier.

    Raises:
        ConfigError: it is no number of classes.
    """
    if not _fits(num_classes, "int") or num_classes < 0:
        rule = "num_classes is a whole number, 0 or more"
        raise ConfigError("reset_classifier(num_classes)", f"num_classes={num_classes!r}", rule, "num_classes=10")


class ImageModel(nn.Module):
    """Base class of all families; a subclass defines `maps` and `forward`.

    Attributes:
        config: its size.
        num_features: channels that the classifier reads.
        channels: of each map of `maps`.
        strides: how many pixels of an image a step in each map is.
    """

    CLASSIFIER: tuple[str, ...] = ("fc",)  # the layers that give a number per class, by name
    config: ImageConfig
    num_features: int
    channels: tuple[int, ...]
    strides: tuple[int, ...]

    def maps(self, images: flow.Tensor) -> list[flow.Tensor]:
        """Return the map behind each stage, the finest first: `(B, channels[i], H / strides[i], W / strides[i])`.

        Args:
            images: `(B, in_chans, H, W)`.
        """
        raise NotImplementedError

    def loss(self, images: flow.Tensor, labels: flow.Tensor) -> flow.Tensor:
        """Return the mean cross entropy of a batch, in nats per image: what a `Trainer` minimises.

        Args:
            images: `(B, in_chans, H, W)`, any sbp.
            labels: `(B,)` numbers of classes, or `(B, num_classes)` shares of them, as `MixUp` gives them.

        Example:
            >>> model = flow.vision.create_model("resnet18", num_classes=2, depths=(1, 1, 1, 1), width=8)
            >>> model.loss(flow.zeros(2, 3, 32, 32), flow.tensor([0, 1])).shape
            sbpjax.Size([])
        """
        return F.cross_entropy(self(images).float(), labels)

    @property
    def classes(self) -> int:
        """The number of classes of the classifier; 0 without one."""
        return getattr(self.get_submodule(self.CLASSIFIER[0]), "out_features", 0)

    def check_data(self, data: Any) -> None:
        """Refuse a dataset with more classes than the model; a `Trainer` asks this before anything else.

        Args:
            data: any; those that name their classes have `classes`, as `ImageFolder`.

        Raises:
            DataError: it has more.

        Example:
            >>> flow.vision.create_model("resnet18", num_classes=2).check_data(range(3))  # names none
        """
        names = getattr(data, "classes", None)
        if not isinstance(names, (list, tuple)) or not self.classes or len(names) <= self.classes:
            return
        few = ", ".join(map(str, names[:5])) + (", …" if len(names) > 5 else "")
        model = type(self).__name__
        rule = f"{model} has num_classes={self.classes}, so labels are 0 to {self.classes - 1}"
        seen = f"a dataset of {len(names)} classes: {few}"
        raise DataError(f"training {model}", seen, rule, f"num_classes={len(names)}")

    def check_batch(self, batch: Any) -> None:
        """Refuse labels that are no class; a `Trainer` shows each batch while it is on the host.

        Args:
            batch: a dict with ``labels``, or a sequence whose second part they are.

        Raises:
            DataError: a label is none.

        Example:
            >>> model = flow.vision.create_model("resnet18", num_classes=3)
            >>> model.check_batch({"labels": flow.tensor([0, 2])})
        """
        labels = label_checks.batch_part(batch, "labels", 1)
        if labels is not None and labels.ndim == 1:
            label_checks.check_labels(labels, type(self).__name__, self.classes)

    def check_images(self, images: flow.Tensor) -> flow.Tensor:
        """Return the images if a model can read them.

        Raises:
            OpValueError: they are not `(B, in_chans, H, W)`.
            OpTypeError: they are no tensor, or no floating-point numbers.
        """
        if not isinstance(images, flow.Tensor):
            seen, rule = f"a {type(images).__name__}", f"images are a tensor (B, {self.config.in_chans}, H, W)"
            fix = "flow.tensor(np.stack(arrays)); a photo is read by train.data.ImageFolder, or transforms.ToTensor()"
            raise OpTypeError(f"{type(self).__name__}(images)", seen, rule, fix)
        shape, wanted = tuple(images.shape), self.config.in_chans
        if len(shape) != 4 or shape[1] != wanted:
            last = len(shape) == 4 and shape[3] == wanted
            fix = "images.permute(0, 3, 1, 2)" if last else f"create_model(..., in_chans={shape[-3:][0]})"
            fix = "images.unsqueeze(0)" if len(shape) == 3 and shape[0] == wanted else fix
            rule = f"images are (B, {wanted}, H, W)"
            raise OpValueError(f"{type(self).__name__}(images)", f"shape {shape}", rule, fix)
        if not images.is_floating_point():
            rule = "images are floating-point numbers, normalised as the weights were trained"
            fix = "(images.float() / 255 - mean) / std"
            raise OpTypeError(f"{type(self).__name__}(images)", f"dtype {images.dtype}", rule, fix)
        return images

    def reset_classifier(self, num_classes: int) -> None:
        """Replace the classifier by a fresh one; 0 leaves it out.

        Args:
            num_classes: classes of the new one.

        Example:
            >>> model = flow.vision.create_model("resnet18")
            >>> model.reset_classifier(10)
            >>> model.fc.weight.shape
            sbpjax.Size([10, 512])
        """
        checked_classes(num_classes)
        for name in self.CLASSIFIER:
            parent, _, last = name.rpartition(".")
            layer = nn.Linear(self.num_features, num_classes) if num_classes else nn.Identity()
            setattr(self.get_submodule(parent), last, layer)


class FeatureMaps(nn.Module):
    """A model as a function from images to the maps of its stages.

    Args:
        body: the model, made with ``num_classes=0``.

    Attributes:
        channels: of each map.
        strides: of each map.

    Example:
        >>> backbone = flow.vision.create_model("resnet18", features_only=True)
        >>> [tuple(m.shape) for m in backbone(flow.zeros(2, 3, 32, 32))][-2:], backbone.strides
        ([(2, 256, 2, 2), (2, 512, 1, 1)], (2, 4, 8, 16, 32))
    """

    def __init__(self, body: ImageModel):
        super().__init__()
        self.body = body
        self.channels, self.strides = body.channels, body.strides

    def forward(self, images: flow.Tensor) -> list[flow.Tensor]:
        """Return the maps of `images` `(B, in_chans, H, W)`, the finest first."""
        return self.body.maps(images)
