"""Convolutions in groups, of one pixel and of few on a CPU: as XLA's operation, as they run, and in PyTorch.

    python -m benchmarks.convolutions

Each of the output, the gradient of the image and that of the kernels is a program of its own, float32, one core; CPU
milliseconds of the process, the least of four runs that take turns.
"""

from __future__ import annotations

import os
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import numpy as np
import torch

from sbpjax._core.ops.conv import primitive as conv_primitive
from sbpjax._core.ops.conv.conv import conv

torch.set_num_threads(1)
# images, channels, size, outputs, kernel, stride, groups
CASES = {
    "depthwise 3 x 3": (8, 64, 56, 64, 3, 1, 64),
    "depthwise 3 x 3, stride 2": (8, 128, 56, 128, 3, 2, 128),
    "depthwise 5 x 5": (8, 240, 14, 240, 5, 1, 240),
    "depthwise 7 x 7": (8, 192, 28, 192, 7, 1, 192),
    "3 x 3, 32 groups of 8": (8, 256, 28, 256, 3, 1, 32),
    "3 x 3, 32 groups of 32": (8, 1024, 7, 1024, 3, 1, 32),
    "3 x 3, 37 groups of 24, few pixels": (2, 888, 4, 888, 3, 1, 37),
    "dense 3 x 3, few pixels": (4, 256, 8, 256, 3, 1, 1),
    "dense 3 x 3, fewer": (4, 512, 4, 512, 3, 1, 1),
    "one pixel, large image": (8, 64, 56, 256, 1, 1, 1),
    "one pixel, small image": (8, 960, 7, 160, 1, 1, 1),
    "one pixel, large kernel": (2, 2048, 4, 1024, 1, 1, 1),
}
KINDS = ("output", "gradient of the image", "gradient of the kernels")


def programs(x, w, ct, how: dict, by_xla: bool) -> list:
    """Return a call for each kind, compiled, with XLA's operation or as it runs."""
    kept = conv_primitive._on_cpu
    if by_xla:
        conv_primitive._on_cpu = conv_primitive._by_xla
    try:
        functions = (
            (lambda x, w, ct: conv(x, w, **how)),
            (lambda x, w, ct: jax.vjp(lambda v: conv(v, w, **how), x)[1](ct)[0]),
            (lambda x, w, ct: jax.vjp(lambda v: conv(x, v, **how), w)[1](ct)[0]),
        )
        compiled = [jax.jit(f).lower(x, w, ct).compile() for f in functions]
    finally:
        conv_primitive._on_cpu = kept
    return [lambda run=run: jax.block_until_ready(run(x, w, ct)) for run in compiled]


def peers(x, w, ct, how: dict) -> list:
    """Return PyTorch's calls."""
    a, b, c = (torch.tensor(v) for v in (x, w, ct))
    stride, padding, groups = ([how["stride"]] * 2, [how["padding"]] * 2, how["groups"])

    def backward(mask):
        return torch.ops.aten.convolution_backward(c, a, b, None, stride, padding, [1, 1], False, [0, 0], groups, mask)

    return [
        lambda: torch.conv2d(a, b, None, stride, padding, 1, groups),
        lambda: backward([True, False, False]),
        lambda: backward([False, True, False]),
    ]


def main() -> None:
    """Print the table."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    rng = np.random.default_rng(0)
    print("| convolution | what | XLA ms | ours ms | PyTorch ms |\n|---|---|---|---|---|")
    for name, (n, c, size, o, k, stride, groups) in CASES.items():
        how = {"stride": stride, "padding": k // 2, "groups": groups}
        x = rng.normal(size=(n, c, size, size)).astype(np.float32)
        w = rng.normal(size=(o, c // groups, k, k)).astype(np.float32)
        ct = np.ones(jax.eval_shape(lambda x, w: conv(x, w, **how), x, w).shape, np.float32)  # noqa: B023
        sides = [programs(x, w, ct, how, True), programs(x, w, ct, how, False), peers(x, w, ct, how)]
        for kind, calls in zip(KINDS, zip(*sides, strict=True), strict=True):
            least = [float("inf")] * len(calls)
            for number in range(4):
                for i, call in enumerate(calls):
                    begun = time.process_time()
                    call()
                    if number:
                        least[i] = min(least[i], time.process_time() - begun)
            print("| {} | {} | {:.1f} | {:.1f} | {:.1f} |".format(name, kind, *(1e3 * t for t in least)), flush=True)


if __name__ == "__main__":
    main()
