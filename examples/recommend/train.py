"""Train models of clicks on generated logs: ``python -m examples.recommend.train``.

Samples whose best AUC is known are generated, or Criteo's own log is read with `--criteo day_0.gz`. DLRM, and Wide &
Deep with crossed features, are trained on `--fsdp` × `--tensor` devices, which share the rows and the columns of the
tables, and have to reach 0.995 of the best AUC. The run leaves metrics, `auc.png` and the
exported models in the output directory.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

os.environ.setdefault("SBPJAX_CPU_DEVICES", "8")

import sbpjax as flow
from examples import recipe
from sbpjax import models, nn, optim
from sbpjax.graph import TensorSpec
from sbpjax.models import recommend
from sbpjax.train import Evaluation, Trainer
from sbpjax.train.data import Clicks, crossed, generated_clicks, hashed, read_criteo
from sbpjax.train.data.generated_clicks import SIZES
from sbpjax.train.evaluation import AUC

BOUND = 0.995  # of the best AUC
KINDS = ("DLRM", "WideDeep")
PAIRS = tuple((len(SIZES) - 1 - 2 * k, len(SIZES) - 2 - 2 * k) for k in range(4))  # crossed by Wide & Deep


@dataclass(frozen=True)
class Options:
    """A run.

    Attributes:
        out: the output directory.
        samples: how many are generated for training.
        held_out: how many for evaluation.
        epochs: how often they are seen.
        batch: samples of a step.
        lr: highest learning rate.
        dim: the length of a feature's vector.
        criteo: a log to read instead; its last tenth is held out.
        parallel: the mesh.
    """

    out: Path = Path("runs/recommend")
    samples: int = 1_500_000
    held_out: int = 50_000
    epochs: int = 2
    batch: int = 1024
    lr: float = 4e-3
    dim: int = 8
    criteo: Path | None = None
    parallel: models.Parallel = models.Parallel(fsdp=4, tensor=2, device="cpu")


def generated(options: Options, kind: str):
    """Return samples for training, the held-out ones, the sizes of the features and the best AUC."""
    parts = generated_clicks(options.samples, seed=1), generated_clicks(options.held_out, seed=2)
    sizes, ids = SIZES, [part.ids for part in parts]
    if kind == "WideDeep":
        more = tuple(4 * SIZES[a] * SIZES[b] for a, b in PAIRS)
        sizes, ids = sizes + more, [np.concatenate([i, hashed(crossed(i, PAIRS), more)], 1) for i in ids]
    found = [Clicks(part.dense, i, part.labels) for part, i in zip(parts, ids, strict=True)]
    return (*found, sizes, parts[1].best_auc)


def logged(options: Options):
    """Return the same of a log of Criteo's, keys hashed; its best AUC is not known."""
    sizes = (100_000,) * 26
    blocks = list(read_criteo(options.criteo))
    arrays = [np.concatenate(column) for column in zip(*((b.dense, hashed(b.keys, sizes), b.labels) for b in blocks))]
    cut = len(arrays[0]) * 9 // 10
    return Clicks(*(a[:cut] for a in arrays)), Clicks(*(a[cut:] for a in arrays)), sizes, float("nan")


class Predict(nn.Graph):
    """The exported graph: the probability of a click."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def build(self, dense, ids):
        """Return probabilities `(B,)`."""
        return self.model(dense, ids).sigmoid()


def export(model: nn.Module, path: Path, config: recommend.RecommendConfig) -> None:
    """Write a model for one device and any batch, as `sbpjax.load_graph` and the server read it."""
    alone = type(model)(config)
    alone.load_state_dict({name: flow.tensor(value.numpy()) for name, value in model.state_dict().items()})
    specs = TensorSpec((1, config.dense)), TensorSpec((1, len(config.features)), flow.int64)
    Predict(alone).export(path, *specs, dynamic_batch=True)


def train(kind: str, options: Options) -> tuple[float, float]:
    """Train a model, export it, and return its held-out AUC and the best one."""
    samples, held_out, sizes, best = logged(options) if options.criteo else generated(options, kind)
    steps = options.epochs * len(samples) // options.batch
    samples.samples = steps * options.batch
    config = recommend.RecommendConfig(features=sizes, dim=options.dim, hidden=(64, 32))
    flow.manual_seed(0)
    model = getattr(recommend, kind)(config)
    groups = [{"params": model.table_parameters(), "is_sparse": True}, {"params": model.dense_parameters()}]
    out = options.out / kind
    trainer = Trainer(
        model=model,
        optimizer=optim.Adam(groups, lr=options.lr),
        data=samples,
        batch_size=options.batch,
        max_steps=steps,
        parallel=options.parallel,
        schedule=optim.lr_scheduler.warmup_cosine(steps // 20, steps, final=0.01),
        hooks=[Evaluation(held_out, AUC(), every=max(steps // 6, 1), name="held_out")],
        out=out,
        log_every=50,
    )
    trainer.fit()
    export(model, out / "model", config)
    return trainer.metrics["held_out/auc"], best


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Options.out)
    parser.add_argument("--fsdp", type=int, default=4, help="ranks that share the rows of tables, and the batch")
    parser.add_argument("--tensor", type=int, default=2, help="ranks that share the columns of tables")
    parser.add_argument("--criteo", type=Path, help="a log of Criteo's, as text or Parquet")
    args = parser.parse_args()
    spec = models.Parallel(fsdp=args.fsdp, tensor=args.tensor, device="cpu")
    options = replace(Options(), out=args.out, parallel=spec, criteo=args.criteo)
    found = {kind: train(kind, options) for kind in KINDS}
    panels = {kind: {"held-out AUC": (options.out / kind, "held_out/auc")} for kind in KINDS}
    recipe.plot(options.out / "auc.png", panels)
    for kind, (auc, best) in found.items():
        print(f"{kind}: AUC {auc:.4f}, best {best:.4f}")
        if not options.criteo:
            recipe.check(f"{kind}, of the best AUC", auc / best, BOUND)


if __name__ == "__main__":
    main()
