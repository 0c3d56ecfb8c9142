"""Train a face recogniser with a margin and partial FC on generated faces: ``python -m examples.faces.train``.

The network learns to distinguish 4,000 people, each step by a quarter of them, and is evaluated on strangers: whether
two images are of one person. Images are divided over all `--devices`, and so are the people of the classifier. The run
leaves `loss.png` and the exported network in the output directory.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

os.environ.setdefault("SBPJAX_CPU_DEVICES", "8")

import sbpjax as flow
from examples import recipe
from examples.faces.data import SIZE, faces, pairs, verification
from sbpjax import nn, optim
from sbpjax.graph import TensorSpec
from sbpjax.models.layers import PartialMarginSoftmax
from sbpjax.nn import functional as F

BOUND = 0.95  # of the pairs of strangers; guessing gives one half


@dataclass(frozen=True)
class Options:
    """A run.

    Attributes:
        out: the output directory.
        people: classes.
        images: of each person.
        strangers: people of the evaluation.
        sample: how many classes a step takes.
        batch: images of a step.
        steps: how many.
        lr: highest learning rate.
        devices: over which images and people are divided.
    """

    out: Path = Path("runs/faces")
    people: int = 4000
    images: int = 16
    strangers: int = 200
    sample: int = 1024
    batch: int = 256
    steps: int = 1000
    lr: float = 2e-3
    devices: int = 8


class Network(nn.Module):
    """Images `(B, 1, 16, 16)` to features `(B, D)` of length 1."""

    def __init__(self, width: int = 32, features: int = 64):
        super().__init__()
        layers: list[nn.Module] = []
        for before, after in ((1, width), (width, 2 * width), (2 * width, 4 * width)):
            layers += [nn.Conv2d(before, after, 3, padding=1, stride=2, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        self.layers = nn.Sequential(*layers)
        self.features = nn.Linear(4 * width * (SIZE // 8) ** 2, features)

    def forward(self, images: flow.Tensor) -> flow.Tensor:
        """Return features."""
        return F.normalize(self.features(self.layers(images).flatten(1)))


class Train(nn.Graph):
    """A step."""

    def __init__(self, network: Network, head: PartialMarginSoftmax, options: Options) -> None:
        super().__init__()
        self.network, self.head = network, head
        dense, sparse = optim.Adam(network.parameters(), lr=options.lr), optim.SparseAdam(head.parameters(), options.lr)
        for optimizer in (dense, sparse):  # the classes that a step draws, and no others, move
            self.add_optimizer(optimizer, lr_sch=optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps))

    def build(self, images, labels):
        """Return the loss, and train."""
        loss = self.head(self.network(images), labels)
        loss.backward()
        return loss


class Features(nn.Graph):
    """The features of images, for evaluation and export."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def build(self, images):
        """Return features `(B, D)`."""
        return self.network(images)


def pixels_of(images: np.ndarray) -> np.ndarray:
    """Return images as the network takes them, `(B, 1, 16, 16)` float32."""
    return (images[:, None].astype(np.float32) - 128) / 64


def train(options: Options) -> float:
    """Train, draw the loss, export the network, and return the verification accuracy on strangers."""
    options.out.mkdir(parents=True, exist_ok=True)
    images, who = faces(options.people, options.images)
    place, split = flow.placement("cpu", list(range(options.devices))), flow.sbp.split(0)
    flow.manual_seed(0)
    network = Network().to_global(place, flow.sbp.broadcast)
    head = PartialMarginSoftmax(options.people, 64, sample=options.sample, blocks=8, m2=0.3, scale=16.0)
    graph = Train(network, head.to_global(place, split), options)
    chance = np.random.default_rng(0)
    with open(options.out / "metrics.jsonl", "w") as file:
        for step in range(1, options.steps + 1):
            chosen = chance.choice(len(who), options.batch, replace=False)
            batch = flow.tensor(pixels_of(images[chosen])), flow.tensor(who[chosen])
            loss = graph(*(x.to_global(place, split) for x in batch))
            if step % 20 == 0 or step == options.steps:
                file.write(json.dumps({"step": step, "loss": loss.item()}) + "\n")
    recipe.plot(options.out / "loss.png", {"faces": {"loss (nats)": (options.out, "loss")}})
    alone = Network()
    alone.load_state_dict({name: flow.tensor(value.numpy()) for name, value in network.state_dict().items()})
    graph = Features(alone.eval())
    graph.export(options.out / "model", TensorSpec((1, 1, SIZE, SIZE)), dynamic_batch=True)
    others, names = faces(options.strangers, 8, world=1, seed=1)
    return verification(graph(flow.tensor(pixels_of(others))).numpy(), *pairs(names, 2000))


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Options.out)
    parser.add_argument("--devices", type=int, default=8, help="over which images and people are divided")
    args = parser.parse_args()
    options = replace(Options(), out=args.out, devices=args.devices)
    recipe.check("pairs of strangers recognised", train(options), BOUND)


if __name__ == "__main__":
    main()
