"""A ViT that reads digits; its matrices are divided over the devices, and so is the batch. See README.md."""

from examples.vision.recipe import trained_on_digits
from sbpjax import vision
from sbpjax.train.config import LazyCall

seed = 0
steps = 800
samples = 1_000_000  # more than any run takes
trainer = trained_on_digits(
    LazyCall(vision.create_model)(
        "vit_tiny_patch16_224",
        num_classes=10,
        in_chans=1,
        image_size=16,
        patch_size=4,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        initializer_range=0.1,
        drop_path_rate=0.1,
    ),
    "vit",
    size=16,
    lr=2e-3,
    margin=1,
    fsdp=8,
)
