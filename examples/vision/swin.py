"""A Swin that reads digits; every device gets an eighth of a batch. See README.md."""

from examples.vision.recipe import trained_on_digits
from sbpjax import vision
from sbpjax.train.config import LazyCall

seed = 0
steps = 800
samples = 1_000_000  # more than any run takes
trainer = trained_on_digits(
    LazyCall(vision.create_model)(
        "swin_tiny_patch4_window7_224",
        num_classes=10,
        in_chans=1,
        image_size=16,
        patch_size=2,
        window=4,
        width=32,
        depths=[2, 2],
        heads=[2, 4],
        drop_path_rate=0.1,
        initializer_range=0.1,
    ),
    "swin",
    size=16,
    lr=2e-3,
    margin=1,
    data=8,
)
