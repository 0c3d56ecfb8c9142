"""Runs programs of libraries and prints one line of JSON for each: its numbers, or its error.

    python -m tests.compat.libraries.run torchvision_resnet           # under the alias, compared with `expected.json`
    python -m tests.compat.libraries.run --results free               # all, kept in `results.json` for the page
    python -m tests.compat.libraries.run --torch --record             # with PyTorch for CPUs: writes `expected.json`

The libraries are those of `requirements-libraries.lock`, as pip installs them.
"""

import importlib
import importlib.metadata
import importlib.util
import json
import sys
import time
import traceback
import types
from pathlib import Path

EXPECTED, RESULTS = (Path(__file__).with_name(f"{name}.json") for name in ("expected", "results"))
TOLERANCE = 1e-5  # of numbers that are at most 1, relative above

# program: the module, and the libraries that it uses
PROGRAMS = {
    "torchvision_resnet": ("vision", "torchvision"),
    "torchvision_transforms": ("vision", "torchvision"),
    "torchvision_dataset": ("vision", "torchvision"),
    "timm_models": ("vision", "timm torchvision"),
    "vit_pytorch_models": ("vision", "vit-pytorch einops"),
    "open_clip_model": ("vision", "open-clip-torch"),
    "segmentation_models": ("vision", "segmentation-models-pytorch"),
    "diffusers_unet": ("vision", "diffusers"),
    "trainer_bert": ("language", "transformers accelerate"),
    "trainer_llama_lora": ("language", "peft transformers"),
    "peft_dora": ("language", "peft"),
    "trainer_t5": ("language", "transformers"),
    "accelerate_loop": ("language", "accelerate"),
    "sentence_transformer": ("language", "sentence-transformers"),
    "torchmetrics_values": ("language", "torchmetrics"),
    "schedulefree_adamw": ("language", "schedulefree"),
    "trl_trainers": ("language", "trl"),
    "trl_training": ("tuning", "trl datasets"),
    "peft_methods": ("tuning", "peft"),
    "lightning_trainer": ("research", "lightning"),
    "lightning_fabric": ("research", "lightning"),
    "graph_networks": ("research", "torch-geometric"),
    "attributions": ("research", "captum"),
    "ignite_engine": ("research", "pytorch-ignite"),
    "differential_equations": ("research", "torchdiffeq"),
    "whisper_model": ("repositories", "openai-whisper"),
    "navit_model": ("repositories", "vit-pytorch"),
    "denoising_diffusion": ("repositories", "denoising-diffusion-pytorch"),
    "fairscale_layers": ("repositories", "fairscale"),
    "kornia_operators": ("wider", "kornia"),
    "monai_unet": ("wider", "monai"),
    "metric_learning": ("wider", "pytorch-metric-learning"),
    "gaussian_process": ("wider", "gpytorch"),
    "scikit_learn_search": ("wider", "skorch"),
    "audio_models": ("further", "torchaudio"),
    "further_optimizers": ("further", "torch-optimizer"),
    "bayesian_optimization": ("further", "botorch"),
    "self_supervised": ("further", "lightly"),
    "tabular_network": ("further", "pytorch-tabnet"),
}


def declare_compiled_operators():
    """Let PyTorch for CPUs import torchvision and torchaudio, whose compiled libraries need CUDA."""
    import torch

    for name in ("nms", "qnms"):  # torchvision registers shapes of two of its operators
        torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    extension = types.ModuleType("torchaudio._extension")  # torchaudio then takes its functions in Python
    extension._IS_TORCHAUDIO_EXT_AVAILABLE, extension.fail_if_no_align = False, lambda function: function
    sys.modules["torchaudio._extension"] = extension


def difference(found, wanted):
    """Return the largest difference of two lists of numbers, infinity where texts or lengths differ."""
    if len(found) != len(wanted):
        return float("inf")
    most = 0.0
    for x, y in zip(found, wanted, strict=True):
        if isinstance(x, str) or isinstance(y, str):
            most = max(most, 0.0 if x == y else float("inf"))
        else:
            gap = abs(x - y) / max(1.0, abs(y))
            most = max(most, gap) if gap == gap else float("inf")
    return most


def run(name):
    """Run a program and return its line."""
    line, start = {"name": name}, time.perf_counter()
    clock = importlib.import_module("tests.compat.libraries.kit").StepClock()  # it imports torch, which may be ours
    try:
        program = getattr(importlib.import_module(f"tests.compat.libraries.{PROGRAMS[name][0]}"), name)
        with clock:
            line["found"] = program()
    except BaseException as error:
        line["error"] = f"{type(error).__name__}: {error}"
        traceback.print_exc()
    line["seconds"] = round(time.perf_counter() - start, 2)
    if "found" in line and clock.seconds():
        line["two_steps_s"] = clock.seconds()
    return line


def main(words):
    """Run some programs, by default all."""
    options = [word for word in words if word.startswith("--")]
    kept = words.pop(words.index("--results") + 1) if "--results" in words else None
    names = [word for word in words if not word.startswith("--")] or list(PROGRAMS)
    known = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    if "--torch" in options:
        declare_compiled_operators()
    else:
        from sbpjax import mock_torch

        mock_torch.enable()
    for name in names:
        line = run(name)
        if "--record" in options:
            known[name] = {key: line[key] for key in ("found", "seconds")}
            EXPECTED.write_text(
                "{\n" + ",\n".join(f"{json.dumps(n)}: {json.dumps(v)}" for n, v in sorted(known.items())) + "\n}\n"
            )
        elif "error" not in line:
            line["difference"] = difference(line["found"], known[name]["found"])
        if kept:
            keep(name, kept, line)
        print("RESULT " + json.dumps(line), flush=True)


def keep(name, where, line):
    """Enter a run in `results.json`: the versions of the libraries, and its difference or error."""
    table = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    versions = {library: importlib.metadata.version(library) for library in PROGRAMS[name][1].split()}
    row = table.setdefault(name, {})
    row["versions"] = versions
    row[where] = {key: line[key] for key in ("difference", "error", "seconds") if key in line}
    RESULTS.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
