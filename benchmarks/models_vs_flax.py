"""A training step of `sbpjax.models` against the same model in Flax NNX with optax (`benchmarks/flax_models.py`).

GPT-2 and Llama of two layers, AdamW, float32, on one CPU device and on 2 × 2 (data × tensor), with the same parameters
and the same split of them. Steps take turns; what is compared is CPU time of the whole process, as the median of
ratios of neighbouring steps. The persistent cache is off; losses of all steps are compared.

    python -m benchmarks.models_vs_flax                   # two minutes on two cores; needs flax
    python -m benchmarks.models_vs_flax --models llama --meshes 1x1
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("SBPJAX_CPU_DEVICES", "1")
os.environ["SBPJAX_CACHE_DIR"] = "off"
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import jax
import numpy as np

import sbpjax as flow
from benchmarks import flax_models
from sbpjax import models, nn, optim
from sbpjax.models.gpt2 import GPT2, GPT2Config
from sbpjax.models.llama import Llama, LlamaConfig

VOCAB, WIDTH, LAYERS, HEADS, KV_HEADS, HIDDEN, BATCH, LENGTH = 1024, 256, 2, 8, 4, 688, 8, 128


def ours(name: str) -> nn.Module:
    """Return our model, without dropout."""
    if name == "gpt2":
        sizes = {"vocab_size": VOCAB, "n_positions": LENGTH, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS}
        return GPT2(GPT2Config(**sizes, embd_pdrop=0.0, resid_pdrop=0.0, attn_pdrop=0.0))
    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=WIDTH,
        intermediate_size=HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        rms_norm_eps=1e-6,
    )
    return Llama(config)


def theirs(name: str):
    """Return the peer."""
    if name == "gpt2":
        return flax_models.GPT2(VOCAB, LENGTH, WIDTH, LAYERS, HEADS)
    return flax_models.Llama(VOCAB, WIDTH, LAYERS, HEADS, KV_HEADS, HIDDEN)


class Step(nn.Graph):
    """A training step.

    Args:
        model: it.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model
        self.add_optimizer(optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01))

    def build(self, tokens: flow.Tensor, targets: flow.Tensor) -> flow.Tensor:
        """Return the loss."""
        loss = self.model.loss(tokens, targets)
        loss.backward()
        return loss


def measure(name: str, data: int, tensor: int, steps: int) -> float:
    """Return the ratio of CPU time, ours to the peer's."""
    random = np.random.default_rng(0)
    x, y = random.integers(0, VOCAB, (2, BATCH, LENGTH))
    flow.manual_seed(0)
    model, peer = ours(name), theirs(name)
    mesh = None
    if data * tensor > 1:
        axes = (jax.sharding.AxisType.Auto,) * 2
        mesh = jax.make_mesh((data, tensor), ("data", "tensor"), axes, devices=jax.devices()[: data * tensor])
    flax_models.load(peer, {n: p.detach().numpy() for n, p in model.named_parameters()}, mesh)
    run, state = flax_models.trainer(peer)
    theirs_in = [v.astype(np.int32) for v in (x, y)]
    if mesh is not None:
        split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
        theirs_in = [jax.device_put(v, split) for v in theirs_in]
    graph = Step(model)
    ours_in = [flow.tensor(v) for v in (x, y)]
    if mesh is not None:
        spec = models.Parallel(data=data, tensor=tensor, device="cpu")
        models.parallelize(model, spec)
        ours_in = [spec.place(v) for v in (x, y)]
    parameters = list(model.parameters())
    cpu, losses = ([], []), ([], [])
    for step in range(steps + 3):
        for i in (0, 1) if step % 2 else (1, 0):
            began = time.process_time()
            if i == 0:
                loss = graph(*ours_in)
                jax.block_until_ready([p.data.jax() for p in parameters])
            else:
                with contextlib.nullcontext() if mesh is None else jax.set_mesh(mesh):
                    state, loss = run(state, *theirs_in)
                jax.block_until_ready(state)
            if step >= 3:
                cpu[i].append(time.process_time() - began)
            losses[i].append(loss.item())
    ratio = statistics.median(a / b for a, b in zip(*cpu))
    ms = [statistics.median(t) * 1e3 for t in cpu]
    worst = max(abs(a - b) / b for a, b in zip(*losses))
    print(
        f"{name:6} {data} x {tensor}: CPU {ms[0]:7.1f} / {ms[1]:7.1f} ms, ratio {ratio:.2f} (target 1.00); "
        f"losses differ by {worst:.1e} at most",
        flush=True,
    )
    return ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["gpt2", "llama"], choices=["gpt2", "llama"])
    parser.add_argument("--meshes", nargs="+", default=["1x1"], help="data x tensor; set SBPJAX_CPU_DEVICES for it")
    parser.add_argument("--steps", type=int, default=25)
    options = parser.parse_args()
    print(f"jax {jax.__version__}, {os.cpu_count()} cores, float32, batch {BATCH} x {LENGTH}; ours / Flax NNX")
    for mesh in options.meshes:
        for name in options.models:
            measure(name, *map(int, mesh.split("x")), options.steps)


if __name__ == "__main__":
    main()
