"""Write what torchvision's transforms give of one small picture: ``python -m tests.vision.transforms.record``.

Each case is a name and arguments, done by torchvision's `v2.functional` on an image of Pillow, on a tensor of uint8 and
on one of floats. Needs torchvision (0.28.0 was used).
"""

from __future__ import annotations

import pathlib

import numpy as np

DATA = pathlib.Path(__file__).parent / "data" / "facts.npz"
HEIGHT, WIDTH = 21, 30
CASES = {
    "resize": [(12, 17), (40, 33), (9, 60)],
    "resize_bicubic": [(12, 17), (40, 33)],
    "resize_nearest": [(12, 17), (40, 33)],
    "crop": [(3, 4, 10, 12), (-2, 20, 15, 15)],
    "mirrored": [()],
    "turned_over": [()],
    "brightness": [(0.4,), (1.7,)],
    "contrast": [(0.4,), (1.7,)],
    "saturation": [(0.0,), (1.7,)],
    "sharpness": [(0.0,), (1.7,)],
    "hue": [(0.13,), (-0.4,)],
    "posterize": [(3,)],
    "solarize": [(0.6,)],
    "autocontrast": [()],
    "equalize": [()],
    "invert": [()],
}
CHANGES = {
    "ShearX": 0.24, "ShearY": -0.3, "TranslateX": 4.7, "TranslateY": -6.0, "Rotate": 27.0, "Brightness": 0.4,
    "Color": -0.5, "Contrast": 0.3, "Sharpness": 0.6, "Posterize": 5, "Solarize": 0.4, "AutoContrast": 0.0,
    "Equalize": 0.0, "Invert": 0.0,
}  # fmt: skip
MOVES = ("ShearX", "ShearY", "TranslateX", "Rotate")


def picture() -> np.ndarray:
    """Return ``(H, W, 3)`` uint8: waves and noise, so that neighbours are alike and all values occur."""
    rng = np.random.default_rng(3)
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    waves = [np.sin(y / 5 + i) + np.cos(x / (4 + i)) for i in range(3)]
    values = 128 + 50 * np.stack(waves, -1) + 15 * rng.standard_normal((HEIGHT, WIDTH, 3))
    return values.clip(0, 255).astype(np.uint8)


def key(kind: str, name: str, args: tuple) -> str:
    """Return under which name a case is kept."""
    return f"{kind}/{name}/{','.join(map(str, args))}"


def main() -> None:
    """Write the file."""
    import torch
    from PIL import Image
    from torchvision.transforms import v2
    from torchvision.transforms.v2 import functional as F

    modes = {"resize": "bilinear", "resize_bicubic": "bicubic", "resize_nearest": "nearest"}
    white = {"pil": 255, "uint8": 255, "float": 1.0}
    ways = {
        "crop": F.crop, "mirrored": F.horizontal_flip, "turned_over": F.vertical_flip, "hue": F.adjust_hue,
        "brightness": F.adjust_brightness, "contrast": F.adjust_contrast, "saturation": F.adjust_saturation,
        "sharpness": F.adjust_sharpness, "posterize": F.posterize, "autocontrast": F.autocontrast,
        "equalize": F.equalize, "invert": F.invert,
    }  # fmt: skip
    whole = torch.tensor(picture().transpose(2, 0, 1))
    images = {"pil": Image.fromarray(picture()), "uint8": whole, "float": whole / 255}
    facts = {}

    def keep(kind: str, name: str, args: tuple, found) -> None:
        facts[key(kind, name, args)] = np.asarray(found) if kind == "pil" else found.numpy()

    for kind, image in images.items():
        for name, some in CASES.items():
            for args in some:
                if name in modes:
                    mode = F.InterpolationMode(modes[name])
                    found = F.resize(image, list(args), mode, antialias=True)
                elif name == "solarize":
                    found = F.solarize(image, args[0] * white[kind])
                else:
                    found = ways[name](image, *args)
                keep(kind, name, args, found)
        for name, magnitude in CHANGES.items():
            for mode in ("nearest", "bilinear")[: 2 if name in MOVES else 1]:
                one = v2.RandAugment()._apply_image_or_video_transform(
                    image, name, magnitude, F.InterpolationMode(mode), {type(image): None}
                )
                keep(kind, name, (mode,), one)
    DATA.parent.mkdir(exist_ok=True)
    np.savez_compressed(DATA, **facts)


if __name__ == "__main__":
    main()
