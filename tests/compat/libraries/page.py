"""Writes docs/reference/libraries.md from `results.json`: which libraries run, in which version, how close to PyTorch.

python -m tests.compat.libraries.page
"""

import json
from pathlib import Path

from tests.compat.libraries.run import EXPECTED, PROGRAMS, RESULTS, TOLERANCE

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "libraries.md"
ABOUT = {
    "torchvision_resnet": "ResNet-18: output and three training steps",
    "torchvision_transforms": "transforms v2: bytes resized, images, boxes and masks",
    "torchvision_dataset": "a folder of pictures, loader, SqueezeNet's steps",
    "timm_models": "ConvNeXt and ViT: three training steps each",
    "vit_pytorch_models": "ViT, CaiT and MaxViT: two training steps each",
    "open_clip_model": "CLIP: contrastive loss, three steps",
    "segmentation_models": "U-Net with Dice loss, three steps",
    "diffusers_unet": "UNet on DDPM's noise, three steps; DDIM sampling",
    "trainer_bert": "Trainer: BERT, dynamic padding, 20 steps, evaluation, resumed run",
    "trainer_llama_lora": "Trainer: Llama with LoRA, 20 steps, merged, generation",
    "peft_dora": "DoRA: three steps, saved state",
    "trainer_t5": "Trainer: T5, 20 steps, generation",
    "accelerate_loop": "Accelerator: accumulation, clipping, schedule, state",
    "sentence_transformer": "mean pooling, ranking loss, two steps",
    "torchmetrics_values": "twelve metrics over two batches",
    "schedulefree_adamw": "AdamW, with foreach and without, five steps",
    "lightning_trainer": "Trainer: training, validation, checkpoint",
    "lightning_fabric": "Fabric: one epoch",
    "graph_networks": "GCN, GAT and SAGE: four steps each, pooling of a batch",
    "attributions": "integrated gradients, saliency, conductance, DeepLift, occlusion",
    "ignite_engine": "an engine of two epochs, handlers, metrics",
    "differential_equations": "solvers of fixed and of adaptive steps",
    "whisper_model": "Whisper: three steps, decoding through its cache",
    "navit_model": "NaViT on images of several sizes, three steps",
    "denoising_diffusion": "UNet on noise, three steps; predictions",
    "fairscale_layers": "parallel embedding and linear layers, three steps",
    "trl_trainers": "trainers import; log probabilities and entropies",
}
HEAD = """# Libraries of PyTorch that run

These libraries run under `python -m sbpjax.run --as torch` as pip installs them, nothing changed. Each row is a small
program with the same weights and inputs as in PyTorch 2.13; the difference is the largest one of all its numbers,
relative above 1. The programs run in an environment without PyTorch, and beside PyTorch for CPUs; {tolerance:g} is
allowed. The last column has the CPU seconds of the first two training steps of a program's models, compiling included,
and PyTorch's in brackets.

"""
TAIL = """
Ten of these models give their eager losses, to 1e-6, under `torch.compile`, in an `nn.Graph`, and in one over eight
devices, for which `model.to_global(placement, sbp.broadcast)` is all that changes: BERT, Llama, T5, ViT, CaiT, MaxViT,
ResNet, ConvNeXt, Whisper and the UNet of diffusers.

## A library with CUDA kernels of its own

The kernels of flash-attn and xformers are compiled against PyTorch's runtime and cannot run in XLA: importing
`flash_attn_2_cuda` or `xformers.ops` raises an `ImportError` that says so. Use
`torch.nn.functional.scaled_dot_product_attention`, which does not keep the scores, and `attn_implementation="sdpa"` in
transformers. bitsandbytes can be imported, so that peft runs beside it; instead of its 8-bit layers use
[int8 engines](../how_to/engines.md).

## When a library does not run

Run it with `python -m sbpjax.run --as torch --verbose script.py`, and report the library and its version, the last
error with `SBPJAX_FULL_TRACEBACK=1`, and the smallest script that shows it. A name of PyTorch that is missing
raises an error when it is used: a library that only mentions it is imported.

The rows are written by `python -m tests.compat.libraries.run --results free` in an environment with
`requirements-demo.lock` and `requirements-libraries.lock`, `--results beside` in one with PyTorch, and
`python -m tests.compat.libraries.page`.
"""


def text():
    """Return the page."""
    results = json.loads(RESULTS.read_text())
    expected = json.loads(EXPECTED.read_text())
    lines = ["| libraries | program | without PyTorch | beside it | two steps |", "|---|---|---|---|---|"]
    for name in PROGRAMS:
        row = results[name]
        libraries = ", ".join(f"{library} {version}" for library, version in row["versions"].items())
        cells = [_cell(row.get(where, {})) for where in ("free", "beside")]
        lines.append(f"| {libraries} | {ABOUT[name]} | {cells[0]} | {cells[1]} | {_times(row, expected[name])} |")
    return HEAD.format(tolerance=TOLERANCE) + "\n".join(lines) + "\n" + TAIL


def _times(row, expected):
    ours, theirs = row.get("beside", {}).get("two_steps_s"), expected.get("two_steps_s")
    return f"{ours} ({theirs})" if ours and theirs else ""


def _cell(found):
    if "difference" in found:
        return f"{found['difference']:.0e}" if found["difference"] else "0"
    return found.get("error", "not run").partition("\n")[0][:60]


if __name__ == "__main__":
    PAGE.write_text(text())
