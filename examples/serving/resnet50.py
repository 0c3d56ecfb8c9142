"""ResNet-50 on scikit-learn's handwritten digits, 32 × 32 points in three colours. See README.md."""

import numpy as np

import sbpjax as flow
from sbpjax import optim
from sbpjax.train import Checkpoints, Trainer
from sbpjax.train.config import LazyCall
from sbpjax.train.data import ArrayImages
from sbpjax.vision import create_model


def digits(steps: int, batch: int) -> ArrayImages:
    """Return the images of a run."""
    from sklearn.datasets import load_digits

    found = load_digits()
    pixels = np.rint(found.images * (255 / 16)).astype(np.uint8).repeat(4, 1).repeat(4, 2)
    return ArrayImages(np.stack([pixels] * 3, -1), found.target, samples=steps * batch)


def loss(model: flow.nn.Module, images: flow.Tensor, labels: flow.Tensor) -> flow.Tensor:
    """Return the mean cross entropy of labels."""
    return flow.nn.functional.cross_entropy(model(images), labels)


seed = 0
steps = 60
trainer = LazyCall(Trainer)(
    model=LazyCall(create_model)(name="resnet50", num_classes=10),
    loss=LazyCall(loss, partial=True)(),
    optimizer=LazyCall(optim.AdamW, partial=True)(lr=1e-3),
    data=LazyCall(digits)(steps="${steps}", batch="${trainer.batch_size}"),
    batch_size=16,
    max_steps="${steps}",
    hooks={"checkpoints": LazyCall(Checkpoints)(every="${steps}", keep_last=1)},
    out="runs/resnet50",
)
