"""OneFlow's data layers without a file format: `CoinFlip`, `CropMirrorNormalize`.

    mirror = nn.CoinFlip(batch_size=8)       # each call gives the next batch
    images = nn.CropMirrorNormalize("RGB", crop_h=224, crop_w=224)(raw, mirror())

Under a placement a batch is one logical tensor, the same whatever the sbp.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sbpjax._core import functions
from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.generator import Generator
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax.nn.module import Module


class CoinFlip(Module):
    """Random zeros and ones, int8, a new batch per call.

    Args:
        batch_size: the batch size; of a global result on all devices together.
        random_seed: the seed; with None or a negative number they come from the default generator.
        probability: of a one.
        device: the device of the result.
        placement: the devices of a global result.
        sbp: its layout.
    """

    def __init__(
        self,
        batch_size: int = 1,
        random_seed: int | None = None,
        probability: float = 0.5,
        device: Any = None,
        placement: Any = None,
        sbp: Any = None,
    ):
        super().__init__()
        self.batch_size, self.probability = batch_size, probability
        self.device, self.placement, self.sbp = device, placement, sbp
        self.generator = None
        if random_seed is not None and random_seed >= 0:
            self.generator = Generator().manual_seed(random_seed)

    def forward(self) -> Tensor:
        """Return `(batch_size,)` zeros and ones; of a global result every process has its part of one batch."""
        where = {"device": self.device, "placement": self.placement, "sbp": self.sbp}
        return (functions.rand(self.batch_size, generator=self.generator, **where) < self.probability).to(dtypes.int8)


class CropMirrorNormalize(Module):
    """Images cropped, mirrored where a coin is 1, normalized to mean 0 and deviation 1, and transposed.

    Args:
        color_space: ``"BGR"``, ``"RGB"`` or ``"GRAY"``; sets the number of channels.
        output_layout: ``"NCHW"`` or ``"NHWC"``.
        crop_h: height of the cut; 0 keeps all.
        crop_w: width of the cut; 0 keeps all.
        crop_pos_y: its position, from 0 (top) to 1.
        crop_pos_x: its position, from 0 (left) to 1.
        mean: subtracted from each channel.
        std: the divisor of each channel.
        output_dtype: of the result.
    """

    def __init__(
        self,
        color_space: str = "BGR",
        output_layout: str = "NCHW",
        crop_h: int = 0,
        crop_w: int = 0,
        crop_pos_y: float = 0.5,
        crop_pos_x: float = 0.5,
        mean: Sequence[float] = (0.0,),
        std: Sequence[float] = (1.0,),
        output_dtype: Any = None,
    ):
        super().__init__()
        if output_layout not in ("NCHW", "NHWC"):
            rule = "output_layout is 'NCHW' or 'NHWC'"
            fail("value", "CropMirrorNormalize(...)", f"output_layout={output_layout!r}", rule, "'NCHW'")
        self.color_space, self.output_layout = color_space, output_layout
        self.crop, self.position = (crop_h, crop_w), (crop_pos_y, crop_pos_x)
        self.mean, self.std = tuple(mean), tuple(std)
        self.output_dtype = output_dtype or dtypes.float32

    def forward(self, input: Tensor, mirror: Tensor | None = None) -> Tensor:
        """Return the images.

        Args:
            input: `(N, H, W, C)`, any dtype.
            mirror: `(N,)`, not 0 where an image is mirrored left to right.
        """
        for dim, (size, place) in enumerate(zip(self.crop, self.position), 1):
            if size:
                if size > input.shape[dim]:
                    rule = f"the cut is not larger than the image, {input.shape[dim]}"
                    fail("shape", "CropMirrorNormalize(...)", f"crop {self.crop}", rule, "a smaller crop")
                input = input.narrow(dim, int((input.shape[dim] - size) * place), size)
        if mirror is not None:
            input = functions.where((mirror != 0).reshape(-1, 1, 1, 1), input.flip(2), input)
        out = input.to(dtypes.float32)
        channels = input.shape[-1]
        mean, std = (v * channels if len(v) == 1 else v for v in (self.mean, self.std))
        parts = [(out.narrow(3, i, 1) - m) / s for i, (m, s) in enumerate(zip(mean, std, strict=True))]
        out = functions.cat(parts, dim=3)
        out = out.permute(0, 3, 1, 2) if self.output_layout == "NCHW" else out
        return out.to(self.output_dtype)
