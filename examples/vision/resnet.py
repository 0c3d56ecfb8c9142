"""A ResNet that reads digits; every device gets an eighth of a batch. See README.md."""

from examples.vision.recipe import trained_on_digits
from sbpjax import vision
from sbpjax.train.config import LazyCall

seed = 0
steps = 600
samples = 1_000_000  # more than any run takes
trainer = trained_on_digits(
    LazyCall(vision.create_model)("resnet18", num_classes=10, in_chans=1, depths=[1, 1, 1, 1], width=16),
    "resnet",
    size=32,
    lr=2e-3,
    margin=4,
    data=8,
)
