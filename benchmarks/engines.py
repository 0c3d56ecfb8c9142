"""Milliseconds of one call on one core: XLA, XLA with constant weights, OpenVINO, ONNX Runtime and IREE under a graph.

    python -m benchmarks.engines                      # all models; the peer is PyTorch's model, converted by OpenVINO
    python -m benchmarks.engines resnet18 gpt2 --runs 50

The peer is the same architecture in PyTorch, read by OpenVINO's own front end for it. All run in one process that is
bound to one core, in turns, so that whatever else the host does meets all alike; the least time of each counts. Batch
is 1, texts have 128 tokens, images 224 × 224. IREE is left out where it is not installed, and takes a minute to compile
a model. ``--precision bfloat16`` lets OpenVINO compute in it, the peer too.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from importlib.util import find_spec

if __name__ == "__main__":
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # before any thread is made

import numpy as np

import sbpjax as flow
from sbpjax import nn
from sbpjax.models.bert import BertConfig, BertForSequenceClassification
from sbpjax.models.gpt2 import GPT2, GPT2Config
from sbpjax.vision.models import create_model
from sbpjax.vision.models.vit import ViT, ViTConfig

TOKENS = 128


def _resnet(layers: int) -> tuple:
    def peer():
        import torch

        from tests.support.timm_alone import timm

        return timm().create_model(f"resnet{layers}"), torch.randn(1, 3, 224, 224)

    return lambda: create_model(f"resnet{layers}"), lambda: (flow.randn(1, 3, 224, 224),), peer


def _hf(model, example, **options):
    options = {"return_dict": False, **options}
    from torch import nn as tnn

    class Logits(tnn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *args):
            return self.model(*args, **options)[0]

    return Logits(), example


def _peer_gpt2():
    import torch
    import transformers as hf

    config = hf.GPT2Config(vocab_size=8192, n_positions=TOKENS, n_embd=384, n_layer=6, n_head=6)
    # A mask of four dims: transformers looks for packed texts otherwise, which OpenVINO does not convert.
    mask = torch.full((TOKENS, TOKENS), torch.finfo(torch.float32).min).triu(1)[None, None]
    model = hf.GPT2LMHeadModel(config)
    return _hf(model, torch.arange(TOKENS)[None], attention_mask=mask, use_cache=False)


def _peer_bert():
    import torch
    import transformers as hf

    config = hf.BertConfig(num_labels=2)
    return _hf(
        hf.BertForSequenceClassification(config), (torch.arange(TOKENS)[None], torch.ones(1, TOKENS, dtype=torch.int64))
    )


def _peer_vit():
    import torch
    import transformers as hf

    config = hf.ViTConfig(hidden_size=384, num_attention_heads=6, intermediate_size=1536, num_labels=1000)
    return _hf(hf.ViTForImageClassification(config), torch.randn(1, 3, 224, 224))


def _tokens():
    return flow.arange(TOKENS).reshape(1, TOKENS)


class _Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = BertForSequenceClassification(BertConfig(num_labels=2))

    def forward(self, tokens, present):
        return self.model(tokens, None, present)


def _mlp(library):
    layers = library.Linear(784, 512), library.ReLU(), library.Linear(512, 512), library.ReLU(), library.Linear(512, 10)
    return library.Sequential(*layers)


def _peer_mlp():
    import torch

    return _mlp(torch.nn), torch.randn(1, 784)


MODELS = {
    "mlp": (lambda: _mlp(nn), lambda: (flow.randn(1, 784),), _peer_mlp),
    "resnet18": _resnet(18),
    "resnet50": _resnet(50),
    "gpt2": (
        lambda: GPT2(GPT2Config(vocab_size=8192, n_positions=TOKENS, n_embd=384, n_layer=6, n_head=6)),
        lambda: (_tokens(),),
        _peer_gpt2,
    ),
    "bert": (_Bert, lambda: (_tokens(), flow.ones(1, TOKENS, dtype=flow.int64)), _peer_bert),
    "vit_s": (
        lambda: ViT(ViTConfig(hidden_size=384, num_attention_heads=6, intermediate_size=1536, num_labels=1000)),
        lambda: (flow.randn(1, 3, 224, 224),),
        _peer_vit,
    ),
}


class Forward(nn.Graph):
    """The forward pass of a model."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    @flow.no_grad()
    def build(self, *args):
        return self.model(*args)


def _graphs(name: str, precision: str) -> dict:
    make, arguments, _ = MODELS[name]
    model, args = make().eval(), arguments()
    calls = {}
    for label in ("xla", "xla const", "openvino", "onnxruntime", "iree"):
        if label in ("onnxruntime", "iree") and precision != "float32" or label == "iree" and not find_spec("iree"):
            continue
        graph = Forward(model)
        if label == "xla const":
            graph.config.enable_constant_weights(True)
        elif label == "openvino":
            graph.config.enable_openvino(True, precision=precision, threads=1)
        elif label == "onnxruntime":
            graph.config.enable_onnxruntime(True, threads=1)
        elif label == "iree":
            graph.config.enable_iree(True)
        calls[label] = lambda graph=graph: graph(*args).numpy()
    return calls


def _peer(name: str, precision: str):
    import openvino as ov
    import torch

    model, example = MODELS[name][2]()
    args = example if isinstance(example, tuple) else (example,)
    with torch.no_grad():
        converted = ov.convert_model(model.eval(), example_input=args)
    core = ov.Core()
    hint = {"float32": "f32", "bfloat16": "bf16"}[precision]
    options = {"INFERENCE_PRECISION_HINT": hint, "INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY"}
    converted.reshape({port: a.shape for port, a in zip(converted.inputs, args)})
    request = core.compile_model(converted, "CPU", options).create_infer_request()
    arrays = [a.numpy() for a in args]
    return lambda: np.array(request.infer(arrays, share_inputs=True)[0])


def measure(name: str, precision: str, runs: int) -> dict[str, float]:
    """Return the least milliseconds of one call, by engine."""
    calls = _graphs(name, precision)
    calls["peer"] = _peer(name, precision)
    least = dict.fromkeys(calls, float("inf"))
    for turn in range(runs + 2):
        for label, call in calls.items():
            start = time.perf_counter()
            call()
            if turn >= 2:
                least[label] = min(least[label], 1e3 * (time.perf_counter() - start))
    return least


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--precision", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--runs", type=int, default=30)
    options = parser.parse_args()
    import jax
    import openvino

    print(f"one core, {options.precision}, jax {jax.__version__}, openvino {openvino.__version__.split('-')[0]}")
    print(
        "| model | XLA | XLA const | OpenVINO | ONNX Runtime | IREE | peer | OpenVINO / peer | OpenVINO / XLA const |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in options.models:
        t = measure(name, options.precision, options.runs)
        row = [
            t["xla"],
            t["xla const"],
            t["openvino"],
            *(t.get(n, float("nan")) for n in ("onnxruntime", "iree")),
            t["peer"],
        ]
        ratios = t["openvino"] / t["peer"], t["openvino"] / t["xla const"]
        cells = " | ".join(f"{x:.3g}" for x in (*row, *ratios))
        print(f"| {name} | {cells} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
