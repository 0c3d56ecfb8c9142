"""A classifier of ten million classes, compiled for machines that are not there: memory and traffic of a step.

    JAX_PLATFORMS=cpu python -m benchmarks.large_softmax v5p:4x4x4      # 64 chips; or h100:8

Features of 512 from a data-parallel layer that stands for the backbone, `MarginSoftmax` with the classes divided over
all devices, SGD with momentum. Needs the extra `aot`. With ``cpu`` instead of a machine it runs a million classes on
eight CPU devices.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("SBPJAX_CPU_DEVICES", "8")
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import sbpjax as flow
from sbpjax import nn, optim
from sbpjax._core.inspect.display import bytes_text
from sbpjax.models.layers import MarginSoftmax

WIDTH = 512


class Train(nn.Graph):
    """A step."""

    def __init__(self, backbone: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.backbone, self.head = backbone, head
        self.add_optimizer(optim.SGD([*backbone.parameters(), *head.parameters()], lr=0.1, momentum=0.9))

    def build(self, x, labels):
        """Return the loss, and train."""
        loss = self.head(self.backbone(x), labels)
        loss.backward()
        return loss


def step(place, classes: int, width: int, batch: int) -> Train:
    """Return a graph that is compiled."""
    layout = [flow.sbp.split(0)]
    with flow.abstract():
        backbone = nn.Linear(width, width).to_global(place, [flow.sbp.broadcast])
        head = MarginSoftmax(classes, width, m2=0.5).to_global(place, layout)
        x = flow.empty(batch, width, placement=place, sbp=layout)
        labels = flow.empty(batch, dtype=flow.int64, placement=place, sbp=layout)
    graph = Train(backbone, head)
    return graph.compile(x, labels)


def main() -> None:
    """Print what a step holds and moves on each device."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("machine")
    parser.add_argument("--batch", type=int, default=128, help="examples for each device")
    args = parser.parse_args()
    if args.machine == "cpu":
        place, cases, width = flow.placement("cpu", list(range(8))), (10_000, 1_000_000), 64
    else:
        place, cases, width = flow.placement.topology(args.machine), (1_000_000, 10_000_000), WIDTH
    count = len(place.ranks) if hasattr(place, "ranks") else 8
    for classes in cases:
        start = time.perf_counter()
        graph = step(place, classes, width, args.batch * count)
        held = graph.program.compile().memory_analysis()
        print(f"{classes:,} classes × {width} on {args.machine}, {time.perf_counter() - start:.0f} s to compile")
        print(f"  arguments of a device  {bytes_text(held.argument_size_in_bytes)}")
        print(f"  temporaries            {bytes_text(held.temp_size_in_bytes)}")
        print(graph.traffic(), flush=True)


if __name__ == "__main__":
    main()
