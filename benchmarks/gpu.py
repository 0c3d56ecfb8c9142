"""Training steps on one NVIDIA GPU against PyTorch with `torch.compile`, in one process and in turns.

    python -m benchmarks.gpu                       # every case, each in a process of its own
    python -m benchmarks.gpu gpt2 llama            # some
    python -m benchmarks.gpu gpt2 --absent h100:1  # no GPU: compile ours for one, and show what is in it (extra `aot`)

| case | ours | peer |
|---|---|---|
| checks | attention's kernel, forward and backward, against the composition in float32 | |
| gpt2 | GPT-2 124M of `sbpjax.models`, 1,024 tokens, amp bfloat16, AdamW | `torch_models.GPT2`, autocast, fused AdamW |
| llama | Llama of `sbpjax.models` of 1.2B parameters, 2,048 tokens | `torch_models.Llama` |
| attention | causal, 32,768 tokens, 16 heads of 128, bfloat16, forward and backward | `scaled_dot_product_attention` |
| resnet50 | `sbpjax.vision.models` ResNet-50, 224 px, amp bfloat16, SGD | torchvision's, channels last, autocast |

A round is several steps of each and one synchronisation; medians of rounds are compared. Model FLOPs per token are 6 a
parameter of the matrices and 12 · layers · T · D of attention, half of which a causal mask leaves; MFU is against the
dense bfloat16 peak of the data sheet, 989 TFLOP/s.
"""

from __future__ import annotations

import argparse
import functools
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the card is shared with the peer
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import numpy as np

PEAK = 989e12  # dense bfloat16 of an H100 or H200 (SXM), data sheet
VOCAB = 50304  # GPT-2's 50,257, rounded up to a multiple of 128
GPT2_SIZES = {"layers": 12, "width": 768, "heads": 12, "length": 1024, "batch": 32}
LLAMA_SIZES = {"vocab": 128256, "layers": 16, "width": 2048, "hidden": 8192, "heads": 32, "kv_heads": 8}
LLAMA_BATCH = (4, 2048)
ROUNDS, STEPS = 5, 10
TRACES: list[str] = []  # folders
ALONE: list[bool] = []  # without the peer


# --- ours -------------------------------------------------------------------------------------------------------------


def gpt2_model():
    """Return GPT-2 124M without dropout."""
    from sbpjax.models.gpt2 import GPT2, GPT2Config

    s = GPT2_SIZES
    sizes = {"n_positions": s["length"], "n_embd": s["width"], "n_layer": s["layers"], "n_head": s["heads"]}
    return GPT2(GPT2Config(vocab_size=VOCAB, **sizes, embd_pdrop=0.0, resid_pdrop=0.0, attn_pdrop=0.0))


def llama_model():
    """Return a Llama of 1.2B parameters."""
    from sbpjax.models.llama import Llama, LlamaConfig

    s = LLAMA_SIZES
    return Llama(
        LlamaConfig(
            vocab_size=s["vocab"],
            hidden_size=s["width"],
            intermediate_size=s["hidden"],
            num_hidden_layers=s["layers"],
            num_attention_heads=s["heads"],
            num_key_value_heads=s["kv_heads"],
            rope_theta=500000.0,
            rms_norm_eps=1e-5,
            tie_word_embeddings=True,
        )
    )


def training(model, loss: Callable, optimizer):
    """Return a graph of one training step under amp."""
    import sbpjax as flow
    from sbpjax import nn

    class Step(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.config.enable_amp(True, dtype=flow.bfloat16)
            self.add_optimizer(optimizer)

        def build(self, x, y):
            value = loss(self.model, x, y)
            value.backward()
            return value

    return Step()


def language_step(name: str, place=None):
    """Return ours as ``(graph, tokens, targets)``, abstract on a placement."""
    import sbpjax as flow
    from sbpjax import optim

    batch, length = (GPT2_SIZES["batch"], GPT2_SIZES["length"]) if name == "gpt2" else LLAMA_BATCH
    made = gpt2_model if name == "gpt2" else llama_model
    vocab = VOCAB if name == "gpt2" else LLAMA_SIZES["vocab"]
    if place is None:
        with flow.device("cuda"):
            model = made()
        x, y = (flow.tensor(v, device="cuda") for v in tokens(vocab, batch, length))
    else:
        with flow.abstract():
            model = made()
            x = flow.zeros(batch, length, dtype=flow.int64, placement=place, sbp=[flow.sbp.split(0)])
        model.to_global(place, [flow.sbp.broadcast])
        y = x
    graph = training(model, lambda m, x, y: m.loss(x, y), optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1))
    return graph, x, y


def tokens(vocab: int, batch: int, length: int) -> np.ndarray:
    """Return tokens and targets."""
    return np.random.default_rng(0).integers(0, vocab, (2, batch, length))


# --- both, in turns ---------------------------------------------------------------------------------------------------


def compared(name: str, ours: Callable, theirs: Callable, unit: str, per_step: float, flops: float | None) -> None:
    """Print speeds of two steps; each returns something whose value can be awaited by ``float``."""
    times: tuple[list, list] = ([], [])
    sides = [ours] if ALONE else [ours, theirs]
    for i, step in enumerate(sides):
        began = time.perf_counter()
        first = float(step())
        print(
            f"{name}: {('ours', 'torch')[i]} first step {time.perf_counter() - began:.1f} s, loss {first:.4f}",
            flush=True,
        )
        for _ in range(3):
            last = step()
        float(last)
    for _ in range(ROUNDS):
        for i, step in enumerate(sides):
            began = time.perf_counter()
            for _ in range(STEPS):
                last = step()
            float(last)
            times[i].append((time.perf_counter() - began) / STEPS)
    mine, peer = (statistics.median(t or [np.nan]) for t in times)
    spread = [f"{min(t) * 1e3:.1f} to {max(t) * 1e3:.1f}" if t else "not run" for t in times]
    print(
        f"{name}: ours {mine * 1e3:.2f} ms ({spread[0]}), {per_step / mine:,.0f} {unit}/s; "
        f"torch.compile {peer * 1e3:.2f} ms ({spread[1]}), {per_step / peer:,.0f} {unit}/s; ratio {peer / mine:.3f}"
    )
    if flops is not None:
        print(f"{name}: MFU ours {flops / mine / PEAK:.3f}, torch.compile {flops / peer / PEAK:.3f}")
    print(f"{name}: {memory()}", flush=True)
    for folder in TRACES:
        import jax

        with jax.profiler.trace(folder):
            for _ in range(3):
                last = ours()
            float(last)


def memory() -> str:
    """Return the most bytes that each side held."""
    import jax
    import torch

    stats = jax.devices()[0].memory_stats() or {}
    peak = stats.get("peak_bytes_in_use", 0)
    return f"peak memory ours {peak / 1e9:.2f} GB, torch {torch.cuda.max_memory_allocated() / 1e9:.2f} GB"


def torch_trainer(model, optimizer, call: Callable) -> Callable:
    """Return a step of a compiled PyTorch model."""
    import torch

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = call(model)
        loss.backward()
        optimizer.step()
        return loss

    return step


def language(name: str) -> None:
    """Compare a language model."""
    import torch

    from benchmarks import torch_models

    torch.backends.cuda.matmul.allow_tf32 = True
    graph, x, y = language_step(name)
    parameters = sum(p.numel() for p in graph.model.parameters())
    if name == "gpt2":
        s = GPT2_SIZES
        vocab, batch, length = VOCAB, s["batch"], s["length"]
        peer = torch_models.GPT2(vocab, length, s["width"], s["layers"], s["heads"])
        matrices = parameters - length * s["width"]
    else:
        s, (batch, length) = LLAMA_SIZES, LLAMA_BATCH
        vocab = s["vocab"]
        peer = torch_models.Llama(vocab, s["width"], s["hidden"], s["layers"], s["heads"], s["kv_heads"])
        matrices = parameters
    assert parameters == sum(p.numel() for p in peer.parameters()), "the two models differ"
    peer = torch.compile(peer.cuda())
    optimizer = torch.optim.AdamW(peer.parameters(), lr=3e-4, weight_decay=0.1, fused=True)
    a, b = (torch.from_numpy(v).cuda() for v in tokens(vocab, batch, length))
    flops = batch * length * (6 * matrices + 6 * s["layers"] * length * s["width"])
    theirs = torch_trainer(peer, optimizer, lambda m: m(a, b))
    print(f"{name}: {parameters / 1e6:.1f}M parameters, batch {batch} x {length}")
    compared(name, lambda: graph(x, y), theirs, "tokens", batch * length, flops)
    shown(name, graph.hlo(x, y))


def shown(name: str, text: str) -> None:
    """Print which kernels a compiled step calls."""
    found = {n: text.count(f'custom_call_target="{n}"') for n in ("__cudnn$fmhaSoftmax", "__cudnn$fmhaSoftmaxBackward")}
    print(f"{name}: calls in the compiled step: {found}", flush=True)


def resnet50() -> None:
    """Compare ResNet-50."""
    import torch
    import torchvision

    import sbpjax as flow
    from sbpjax import optim
    from sbpjax.vision.models import create_model

    batch = 128
    with flow.device("cuda"):
        model = create_model("resnet50")
    images = np.random.default_rng(0).standard_normal((batch, 3, 224, 224), dtype=np.float32)
    labels = np.random.default_rng(1).integers(0, 1000, batch)
    graph = training(
        model,
        lambda m, x, y: flow.nn.functional.cross_entropy(m(x), y),
        optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4),
    )
    x, y = flow.tensor(images, device="cuda"), flow.tensor(labels, device="cuda")
    peer = torch.compile(torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last))
    optimizer = torch.optim.SGD(peer.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, fused=True)
    a = torch.from_numpy(images).cuda().to(memory_format=torch.channels_last)
    b = torch.from_numpy(labels).cuda()
    theirs = torch_trainer(peer, optimizer, lambda m: torch.nn.functional.cross_entropy(m(a), b))
    compared("resnet50", lambda: graph(x, y), theirs, "images", batch, None)


def attention() -> None:
    """Compare causal attention over 32,768 tokens."""
    import torch

    import sbpjax as flow

    shape = (1, 16, 32768, 128)
    arrays = [np.random.default_rng(i).standard_normal(shape, dtype=np.float32) for i in range(4)]
    attend = flow.nn.functional.scaled_dot_product_attention

    def loss(q, k, v, ct):
        q, k, v = (t.detach().requires_grad_() for t in (q, k, v))
        out = attend(q, k, v, is_causal=True)
        return flow.autograd.grad(out, (q, k, v), ct)

    run = flow.compile(loss)
    ours_in = [flow.tensor(a, device="cuda").to(flow.bfloat16) for a in arrays]
    theirs_in = [torch.from_numpy(a).cuda().bfloat16() for a in arrays]
    leaves = [t.clone().requires_grad_() for t in theirs_in[:3]]

    def theirs():
        out = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=True)
        return torch.autograd.grad(out, leaves, theirs_in[3])[0][0, 0, 0, 0]

    def ours():
        return run(*ours_in)[0][0, 0, 0, 0]

    tokens_ = shape[2]
    flops = 3.5 * 4 * shape[1] * tokens_**2 * shape[3] / 2
    compared("attention", ours, theirs, "tokens", tokens_, flops)


def checks() -> None:
    """Compare the kernel with the composition, and an eager step with a compiled one."""
    import jax
    import jax.numpy as jnp

    from sbpjax._core.ops.attention.attention import scaled_dot_product_attention as attend

    print(jax.__version__, jax.devices(), flush=True)
    rng = np.random.default_rng(0)
    for length, heads, kv_heads, width, options in (
        (1024, 8, 8, 64, {"is_causal": True}),
        (2048, 8, 2, 128, {"is_causal": True}),
        (1024, 4, 4, 64, {}),
        (1024, 4, 4, 64, {"window_size": (255, 0)}),
    ):
        q, k, v, ct = (
            jnp.asarray(rng.standard_normal((2, h, length, width)), jnp.bfloat16)
            for h in (heads, kv_heads, kv_heads, heads)
        )

        def step(q, k, v, ct, implementation, options=options):
            call = functools.partial(attend, enable_gqa=True, implementation=implementation, **options)
            out, back = jax.vjp(call, q, k, v)
            return out, *back(ct)

        kernel = jax.jit(functools.partial(step, implementation="cudnn"))
        text = kernel.lower(q, k, v, ct).compile().as_text()
        wide = [x.astype(jnp.float32) for x in (q, k, v, ct)]
        with jax.default_matmul_precision("highest"):
            want = jax.jit(functools.partial(step, implementation="plain"))(*wide)
        errors = [
            float(jnp.linalg.norm((a.astype(jnp.float32) - b).ravel()) / jnp.linalg.norm(b.ravel()))
            for a, b in zip(kernel(q, k, v, ct), want)
        ]
        worst = max(errors)
        print(
            f"checks: T {length}, {heads}/{kv_heads} heads of {width}, {options}: cuDNN {'fmhaSoftmax' in text}, "
            f"relative errors {', '.join(f'{e:.1e}' for e in errors)}",
            flush=True,
        )
        assert worst < 1e-2, "bfloat16 products lie between 1e-3 and 1e-2"
    eager_and_compiled()


def eager_and_compiled() -> None:
    """Train a small GPT-2 op by op and as a graph, and compare the losses."""
    import sbpjax as flow
    from sbpjax import nn, optim
    from sbpjax.models.gpt2 import GPT2, GPT2Config

    def made():
        flow.manual_seed(0)
        sizes = {"vocab_size": 512, "n_positions": 64, "n_embd": 64, "n_layer": 2, "n_head": 2}
        with flow.device("cuda"):
            model = GPT2(GPT2Config(**sizes, embd_pdrop=0.0, resid_pdrop=0.0, attn_pdrop=0.0))
        return model, optim.AdamW(model.parameters(), lr=1e-3)

    class Step(nn.Graph):
        def __init__(self, model, optimizer):
            super().__init__()
            self.model = model
            self.add_optimizer(optimizer)

        def build(self, x, y):
            loss = self.model.loss(x, y)
            loss.backward()
            return loss

    x, y = (flow.tensor(v, device="cuda") for v in tokens(512, 4, 64))
    graph = Step(*made())
    compiled = [graph(x, y).item() for _ in range(3)]
    model, optimizer = made()
    eager = []
    for _ in range(3):
        loss = model.loss(x, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        eager.append(loss.item())
    print(f"checks: losses eager {eager}, compiled {compiled}, on {loss.device}", flush=True)
    assert np.allclose(eager, compiled, rtol=1e-3), "TF32 products lie near 3e-4"


def absent(name: str, machine: str) -> None:
    """Compile ours for a machine that is not there."""
    from sbpjax import placement

    place = placement.topology(machine, [int(machine.rpartition(":")[2])])
    graph, x, y = language_step(name, place)
    began = time.perf_counter()
    report = graph.memory(x, x)
    print(f"{name} on {machine}: compiled in {time.perf_counter() - began:.0f} s")
    print(report)
    shown(name, graph.hlo(x, y))


CASES = {
    "checks": checks,
    "gpt2": functools.partial(language, "gpt2"),
    "llama": functools.partial(language, "llama"),
    "attention": attention,
    "resnet50": resnet50,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=list(CASES), choices=[*CASES, []])
    parser.add_argument("--absent", metavar="MACHINE", help="compile ours for a machine that is not there")
    parser.add_argument("--here", action="store_true", help="run the cases in this process")
    parser.add_argument("--trace", metavar="FOLDER", help="leave the profiler's trace of three steps of ours there")
    parser.add_argument("--alone", action="store_true", help="without the peer")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for each case")
    options = parser.parse_args()
    for name in options.cases:
        if options.absent:
            absent(name, options.absent)
        elif options.here:
            TRACES.extend([options.trace] if options.trace else [])
            ALONE.extend([True] if options.alone else [])
            CASES[name]()
        else:
            try:
                traced = ["--trace", os.path.join(options.trace, name)] if options.trace else []
                command = [
                    sys.executable,
                    "-m",
                    "benchmarks.gpu",
                    name,
                    "--here",
                    *traced,
                    *["--alone"] * options.alone,
                ]
                subprocess.run(command, timeout=options.limit)
            except subprocess.TimeoutExpired:
                print(f"{name}: not done after {options.limit:.0f} s", flush=True)


if __name__ == "__main__":
    main()
