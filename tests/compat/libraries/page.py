"""Writes docs/reference/libraries.md from `results.json`: which libraries run, in which version, how close to PyTorch.

python -m tests.compat.libraries.page
"""

import json
from pathlib import Path

from tests.compat.libraries.run import PROGRAMS, RESULTS, TOLERANCE

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "libraries.md"
ABOUT = {
    "torchvision_resnet": "ResNet-18: output and three training steps",
    "torchvision_transforms": "transforms v2: resized bytes, images, boxes and masks",
    "torchvision_dataset": "an image folder, a loader, steps of SqueezeNet",
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
    "differential_equations": "solvers with fixed and adaptive steps",
    "whisper_model": "Whisper: three steps, decoding through its cache",
    "navit_model": "NaViT on images of several sizes, three steps",
    "denoising_diffusion": "UNet on noise, three steps; predictions",
    "fairscale_layers": "parallel embedding and linear layers, three steps",
    "kornia_operators": "filters, colors, warps, a loss, and their gradients",
    "monai_unet": "U-Net with Dice loss, three steps; sliding windows, Dice metric",
    "metric_learning": "ten losses with gradients, two miners",
    "gaussian_process": "an exact Gaussian process, five steps; predictions",
    "scikit_learn_search": "an estimator with a schedule, and a search over sizes",
    "audio_models": "nine features and filters with gradients; Conformer and wav2vec 2.0, three steps each",
    "further_optimizers": "eleven optimizers, four steps each",
    "bayesian_optimization": "a fitted Gaussian process, expected improvement, Sobol points",
    "self_supervised": "eight losses with gradients, SimSiam's heads, a momentum update",
    "tabular_network": "TabNet: three steps, masks; sparsemax and entmax",
    "trl_training": "SFTTrainer and DPOTrainer: five steps each",
    "peft_methods": "fourteen methods, AdaLoRA, IA3, prefix and prompt tuning among them: two steps each",
    "trl_trainers": "trainers import; log probabilities and entropies",
}
HEAD = """# PyTorch libraries that run

The libraries below run unmodified under `python -m sbpjax.run --as torch`, in the versions that pip installs. Each row
is a small program, run with the same weights and inputs in PyTorch 2.13 and in sbpjax. The two middle columns show the
largest difference between the results of both runs, absolute for numbers up to 1 and relative above: in an environment
without PyTorch, and in one with PyTorch for CPUs. Differences up to {tolerance:g} pass. The last column shows the CPU
seconds of the first two training steps of the program's models, including compilation, with PyTorch's in brackets; it
is empty for programs without two steps. Both times come from one run with an empty cache. The models are tiny, so JAX's
tracing of each new op and shape takes most of the time.

"""
TAIL = """
For ten of these models, losses agree to within 1e-6 in eager mode, under `torch.compile`, in an `nn.Graph` on one
device, and in a graph on eight devices: BERT, Llama, T5, ViT, CaiT, MaxViT, ResNet, ConvNeXt, Whisper and the UNet of
diffusers. The only change for eight devices is `model.to_global(placement, sbp.broadcast)`.

## Libraries with their own CUDA kernels

The kernels of flash-attn and xformers are compiled for PyTorch's runtime and cannot run in XLA, so importing
`flash_attn_2_cuda` or `xformers.ops` raises an `ImportError` that explains this. Use
`torch.nn.functional.scaled_dot_product_attention`, which does not store the scores, and `attn_implementation="sdpa"` in
transformers. bitsandbytes can be imported, because peft imports it; use [int8 engines](../how_to/engines.md) instead of
its 8-bit layers. Importing deepspeed, mamba_ssm, causal_conv1d, e3nn or pyro raises a similar error: e3nn builds its
modules as graphs of `torch.fx`, and Pyro needs all of PyTorch's distributions. Use e3nn-jax and NumPyro
[with `wrap_jax`](../how_to/flax_and_jax.md).

## Report a library that does not run

Run it with `python -m sbpjax.run --as torch --verbose script.py`. Report the library and its version, the last error
under `SBPJAX_FULL_TRACEBACK=1`, and the smallest script that reproduces it. A missing PyTorch name
raises an error only when it is used, so a library that merely mentions it can be imported.

To regenerate the table, run `python -m tests.compat.libraries.run --results free` in an environment with
`requirements-demo.lock` and `requirements-libraries.lock`, `python -m tests.compat.libraries.two_steps` in one with
PyTorch, and `python -m tests.compat.libraries.page`.
"""


def text():
    """Return the page."""
    results = json.loads(RESULTS.read_text())
    lines = ["| libraries | program | without PyTorch | with PyTorch | two steps |", "|---|---|---|---|---|"]
    for name in PROGRAMS:
        row = results[name]
        libraries = ", ".join(f"{library} {version}" for library, version in row["versions"].items())
        cells = [_cell(row.get(where, {})) for where in ("free", "beside")]
        lines.append(f"| {libraries} | {ABOUT[name]} | {cells[0]} | {cells[1]} | {_times(row)} |")
    return HEAD.format(tolerance=TOLERANCE) + "\n".join(lines) + "\n" + TAIL


def _times(row):
    return "{:.2f} ({:.2f})".format(*row["two_steps_s"]) if "two_steps_s" in row else ""


def _cell(found):
    if "difference" in found:
        return f"{found['difference']:.0e}" if found["difference"] else "0"
    return found.get("error", "not run").partition("\n")[0][:60]


if __name__ == "__main__":
    PAGE.write_text(text())
