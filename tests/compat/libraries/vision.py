"""Programs of libraries for images: torchvision, timm, open_clip, vit-pytorch, segmentation models, diffusers."""

import numpy as np
import torch
from torch.nn import functional as F

from tests.compat.libraries.kit import digest, fill, integers, numbers, tensor, train


def torchvision_resnet():
    """ResNet-18 of torchvision: its output in evaluation, and three training steps in float64.

    In float32 an activation that rounds to the other side of zero at a ReLU changes the third loss by 4e-5.
    """
    from torchvision.models import resnet18

    model = fill(resnet18(num_classes=10))
    x, y = tensor("x", 8, 3, 96, 96), integers("y", 10, 8)
    found = digest(model.eval()(x))
    model.double()
    return found + train(model, lambda i: F.cross_entropy(model(x.double()), y), lr=1e-3)


def torchvision_transforms():
    """Transforms v2 of uint8 images, with boxes and masks that follow: resize, crop, flip, normalize."""
    from torchvision import tv_tensors
    from torchvision.transforms import v2

    pixels = torch.from_numpy((np.abs(numbers("pixels", 3, 37, 51)) * 80).clip(0, 255).astype(np.uint8))
    found = []
    for size in ([16, 24], [64, 80]):
        for antialias in (True, False):
            resized = v2.functional.resize(pixels, size, antialias=antialias)
            found += [str(resized.dtype), *digest(resized)]
    image = tv_tensors.Image(pixels)
    boxes = tv_tensors.BoundingBoxes([[2, 3, 20, 30], [10, 5, 40, 25]], format="XYXY", canvas_size=(37, 51))
    mask = tv_tensors.Mask(torch.from_numpy((numbers("mask", 37, 51) > 0).astype(np.uint8)))
    steps = v2.Compose(
        [
            v2.Resize([32, 48]),
            v2.CenterCrop([28, 40]),
            v2.RandomHorizontalFlip(1.0),
            v2.ToDtype({tv_tensors.Image: torch.float32, "others": None}, scale=True),
            v2.Normalize([0.4, 0.5, 0.6], [0.2, 0.3, 0.4]),
        ]
    )
    image, boxes, mask = steps(image, boxes, mask)
    found += [type(image).__name__, type(boxes).__name__, type(mask).__name__]
    found += [*digest(image), *boxes.flatten().tolist(), float(mask.float().mean())]
    return found + [type(image + 1).__name__, type(image.clone()).__name__, str(boxes.canvas_size)]


def torchvision_dataset():
    """A folder of pictures, transformed and batched by a loader, through a training step of SqueezeNet."""
    import tempfile
    from pathlib import Path

    from PIL import Image
    from torchvision import datasets, models, transforms

    with tempfile.TemporaryDirectory() as folder:
        for kind in ("cat", "dog"):
            (Path(folder) / kind).mkdir()
            for i in range(3):
                pixels = (np.abs(numbers(f"{kind}{i}", 40, 48, 3)) * 80).clip(0, 255).astype(np.uint8)
                Image.fromarray(pixels).save(Path(folder) / kind / f"{i}.png")
        steps = [transforms.Resize(72), transforms.CenterCrop(64), transforms.ToTensor()]
        data = datasets.ImageFolder(folder, transforms.Compose([*steps, transforms.Normalize([0.5] * 3, [0.2] * 3)]))
        batches = list(torch.utils.data.DataLoader(data, batch_size=3))
    model = fill(models.squeezenet1_1(num_classes=2, dropout=0.0))
    found = [x for images, _ in batches for x in digest(images)]
    return found + train(
        model, lambda i: F.cross_entropy(model(batches[i % 2][0]), batches[i % 2][1]), steps=2, lr=1e-3
    )


def timm_models():
    """A ConvNeXt and a ViT of timm, beside torchvision."""
    import timm

    found = []
    for name, options in (("convnext_atto", {}), ("vit_tiny_patch16_224", {"img_size": 32})):
        model = fill(timm.create_model(name, num_classes=5, **options))
        x, y = tensor("x", 2, 3, 32, 32), integers("y", 5, 2)
        found += train(model, lambda i, model=model, x=x, y=y: F.cross_entropy(model(x), y))
    return found


def vit_pytorch_models():
    """ViT, CaiT and MaxViT of vit-pytorch."""
    from vit_pytorch import ViT
    from vit_pytorch.cait import CaiT
    from vit_pytorch.max_vit import MaxViT

    sizes = {"image_size": 32, "patch_size": 8, "num_classes": 5, "dim": 32, "heads": 2, "mlp_dim": 64}
    models = [
        ViT(depth=2, **sizes),
        CaiT(depth=2, cls_depth=1, **sizes),
        MaxViT(num_classes=5, dim=16, dim_head=8, depth=(1, 1), window_size=2, dropout=0.0),
    ]
    x, y = tensor("x", 2, 3, 32, 32), integers("y", 5, 2)
    return [loss for m in map(fill, models) for loss in train(m, lambda i, m=m: F.cross_entropy(m(x), y), steps=2)]


def open_clip_model():
    """A small CLIP of open_clip: its contrastive loss over three steps."""
    from open_clip.loss import ClipLoss
    from open_clip.model import CLIP

    vision = {"image_size": 32, "layers": 2, "width": 32, "head_width": 16, "patch_size": 8}
    text = {"context_length": 12, "vocab_size": 100, "width": 32, "heads": 2, "layers": 2}
    model = fill(CLIP(embed_dim=16, vision_cfg=vision, text_cfg=text))
    with torch.no_grad():
        model.logit_scale.fill_(2.0)
    images, tokens = tensor("images", 3, 3, 32, 32), integers("tokens", 100, 3, 12)
    loss = ClipLoss()
    return train(model, lambda i: loss(*model(images, tokens)))


def segmentation_models():
    """A U-Net of segmentation-models-pytorch with a ResNet-18 as encoder."""
    import segmentation_models_pytorch as smp

    model = fill(smp.Unet("resnet18", encoder_weights=None, classes=2, decoder_channels=(32, 16, 16, 8, 8)))
    x, y = tensor("x", 2, 3, 64, 64), integers("y", 2, 2, 64, 64)
    loss = smp.losses.DiceLoss("multiclass")
    return train(model, lambda i: loss(model(x), y) + F.cross_entropy(model(x), y))


def diffusers_unet():
    """A UNet of diffusers: training on noise of DDPM, and a few steps of sampling."""
    from diffusers import DDIMScheduler, DDPMScheduler, UNet2DModel

    blocks = {"down_block_types": ("DownBlock2D", "AttnDownBlock2D"), "up_block_types": ("AttnUpBlock2D", "UpBlock2D")}
    sizes = {"sample_size": 16, "block_out_channels": (16, 32), "norm_num_groups": 8, "layers_per_block": 1}
    model = fill(UNet2DModel(in_channels=1, out_channels=1, attention_head_dim=8, **sizes, **blocks))
    schedule = DDPMScheduler(num_train_timesteps=50)
    x, noise, steps = tensor("x", 4, 1, 16, 16), tensor("noise", 4, 1, 16, 16), integers("steps", 50, 4)
    noisy = schedule.add_noise(x, noise, steps)
    found = train(model, lambda i: F.mse_loss(model(noisy, steps).sample, noise))
    sampler = DDIMScheduler(num_train_timesteps=50)
    sampler.set_timesteps(4)
    sample = tensor("start", 1, 1, 16, 16)
    with torch.no_grad():
        for t in sampler.timesteps:
            sample = sampler.step(model(sample, t).sample, t, sample).prev_sample
    return found + digest(sample)
