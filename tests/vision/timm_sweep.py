"""timm's architectures under the alias of torch: the same file, weights and images, run by PyTorch and by sbpjax.

    python -m tests.vision.timm_sweep --minutes 20          # goes on where it stopped; one line of JSON a model
    python -m tests.vision.timm_sweep --minutes 5 --below 15    # models of fewer than 15M parameters alone
    python -m tests.vision.timm_sweep --report

The models are taken in turns, one of each of timm's files, in an order drawn from a seed, so that whatever part of them
was run is spread over all families. Models above 100M parameters are left out. The first 40 also run data parallel:
parameters on each of two devices, one image on each.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
import traceback
from collections import defaultdict
from pathlib import Path

import numpy as np

os.environ.setdefault("SBPJAX_CPU_DEVICES", "2")  # the first models run data parallel, too

import sbpjax
from sbpjax import mock_torch
from tests.support.timm_alone import timm, without_torchvision
from tests.vision.models.both import GRADIENTS, LOGITS, random_state

MOST = 100e6  # parameters
RESULTS = Path(os.environ.get("SBPJAX_TIMM_SWEEP", "build/timm_sweep.jsonl"))
SIZE, BATCH = 64, 2  # where a model takes any image
PARALLEL = 40  # models that run data parallel, too
_mocked: dict = {}


def in_turns(names: list[str], seed: int = 0) -> list[str]:
    """Return names of models so that the first of each file come first, in an order drawn from a seed."""
    real, drawn = timm(), random.Random(seed)
    files = defaultdict(list)
    for name in names:
        files[real.models.get_arch_name(name), real.models._registry._model_to_module[name]][:] = [name]
    rows = defaultdict(list)
    for (_, file), (name,) in files.items():
        rows[file].append(name)
    for row in rows.values():
        drawn.shuffle(row)
    turns = [row[i] for i in range(max(map(len, rows.values()))) for _, row in sorted(rows.items()) if i < len(row)]
    return turns


def under_alias():
    """Return timm imported with torch answered by sbpjax; only within `mock_torch.enable`."""
    if not _mocked:
        import importlib

        with without_torchvision():
            _mocked["timm"] = importlib.import_module("timm")
    return _mocked["timm"]


def image_size(config) -> int:
    """Return the side of an image that a model takes: a small one, where its configuration does not fix it."""
    if not config.fixed_input_size:
        least = max(config.min_input_size[1:]) if config.min_input_size else SIZE
        return max(SIZE, least)
    return config.input_size[1]


def run(name: str, parallel: bool = False) -> dict:
    """Run a model twice and return what differs: relative errors of logits and of the gradient by the images.

    Args:
        name: of the model.
        parallel: run it a third time, on two devices, and compare that with PyTorch as well.
    """
    import torch

    real = timm()
    torch.manual_seed(0)
    model = random_state(real.create_model(name))
    count = sum(p.numel() for p in model.parameters())
    if count > MOST:
        return {"model": name, "skipped": f"{count / 1e6:.0f}M parameters"}
    config = model.pretrained_cfg if not isinstance(model.pretrained_cfg, dict) else _config(real, name)
    for size in (image_size(config), config.input_size[1]):
        x = torch.randn(BATCH, 3, size, size, generator=torch.Generator().manual_seed(1), requires_grad=True)
        try:
            wanted = model(x)
            break
        except RuntimeError:  # a kernel is larger than what is left of a small image
            if size == config.input_size[1]:
                raise
    weights = torch.linspace(0.5, 1.5, wanted.numel()).reshape(wanted.shape)
    (wanted * weights).sum().backward()
    state = {key: value.numpy() for key, value in model.state_dict().items()}
    with mock_torch.enable(lazy=True, packages=("timm",)):
        ours = under_alias().create_model(name)
        ours.load_state_dict({key: sbpjax.from_numpy(value.copy()) for key, value in state.items()})
        ours.eval()
        found, gradient = _forward_and_backward(ours, x.detach().numpy(), weights.numpy())
        apart = None
        if parallel:
            pair = {"placement": sbpjax.placement("cpu", [0, 1]), "sbp": sbpjax.sbp.split(0)}
            ours.to_global(pair["placement"], sbpjax.sbp.broadcast)
            apart = _forward_and_backward(ours, x.detach().numpy(), weights.numpy(), **pair)
    result = {
        "model": name,
        "size": size,
        "logits": _difference(found, wanted.detach().numpy()),
        "gradient": _difference(gradient, x.grad.numpy()),
    }
    if apart is not None:  # compared with one device, which is compared with PyTorch
        result |= {"parallel_logits": _difference(apart[0], found)}
        result |= {"parallel_gradient": _difference(apart[1], gradient)}
    if not (result["logits"] <= LOGITS and result["gradient"] <= GRADIENTS):
        exact = _in_float64(name, state, x.detach().numpy(), weights.numpy())
        result |= {"ours_to_float64": max(map(_difference, (found, gradient), exact))}
        result |= {"theirs_to_float64": max(map(_difference, (wanted.detach().numpy(), x.grad.numpy()), exact))}
        with mock_torch.enable(lazy=True, packages=("timm",)):
            both = _forward_and_backward(ours.double(), x.detach().double().numpy(), weights.double().numpy())
        result |= {"in_float64": max(map(_difference, both, exact))}
    return result


def _forward_and_backward(model, images: np.ndarray, weights: np.ndarray, **placed) -> tuple[np.ndarray, np.ndarray]:
    """Return logits, and the gradient of their weighted sum by the images."""
    x = sbpjax.tensor(images, requires_grad=True, **placed)
    found = model(x)
    assert not placed or found.sbp == (sbpjax.sbp.split(0),), found.sbp
    (found * sbpjax.tensor(weights, **placed)).sum().backward()
    return found.detach().numpy(), x.grad.numpy()


def _in_float64(name: str, state: dict, images: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return PyTorch's logits, and the gradient by the images, without the rounding of float32.

    A gradient jumps where the input of a ReLU is 0. Of millions of them one may be so near that float32 rounds it to
    the other side, in PyTorch or here: two right answers then differ in the percents. And with random weights some
    models have gradients of 1e12.
    """
    import torch

    model = timm().create_model(name)  # a new one, because some keep values of float32
    model.load_state_dict({key: torch.tensor(value) for key, value in state.items()})
    x = torch.tensor(images).double().requires_grad_()
    found = model.eval().double()(x)
    (found * torch.tensor(weights).double()).sum().backward()
    return found.detach().numpy(), x.grad.numpy()


def _config(real, name):
    return real.models.get_pretrained_cfg(name)


def _difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    # What is no number differs by infinity: a maximum with NaN is what comes first.
    return float(np.nan_to_num(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-30), nan=np.inf))


def is_right(found: dict) -> bool:
    """Return whether logits and gradients are PyTorch's, of float32 or else of float64; on two devices, too.

    Where PyTorch's own float32 is not its float64, both have to be alike in float64.
    """
    alike = found.get("parallel_logits", 0.0) <= LOGITS and found.get("parallel_gradient", 0.0) <= GRADIENTS
    if found.get("theirs_to_float64", 0.0) > GRADIENTS and found.get("in_float64", 1.0) <= LOGITS:
        return alike
    gradient = min(found.get("gradient", 1.0), found.get("ours_to_float64", 1.0))
    return found.get("logits", 1.0) <= LOGITS and gradient <= GRADIENTS and alike


def results() -> dict[str, dict]:
    """Return what is recorded, by model."""
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    return {found["model"]: found for found in map(json.loads, lines)}


def parameters(name: str) -> float:
    """Return how many parameters a model has, without memory for them; infinity where it cannot be made so."""
    import torch

    try:
        with torch.device("meta"):
            return sum(p.numel() for p in timm().create_model(name).parameters())
    except Exception:  # some compute with values where they are made
        return float("inf")


def go_on(minutes: float, below: float | None = None) -> dict[str, dict]:
    """Run models that are not recorded, for so many minutes, record each, and return all.

    Args:
        minutes: the last model is begun before they are over.
        below: of models with fewer parameters than this alone; the others are left for another time.
    """
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    known, end = results(), time.monotonic() + 60 * minutes
    for name in in_turns(timm().list_models()):
        if name in known:
            continue
        if time.monotonic() > end:
            break
        if below is not None and parameters(name) >= below:
            continue
        begun = time.process_time()
        try:
            found = run(name, sum("parallel_logits" in one and is_right(one) for one in known.values()) < PARALLEL)
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{type(error).__name__}: {error}".splitlines()[0][:300]
            found = {"model": name, "error": text, "at": f"{Path(last.filename).name}:{last.lineno}"}
        found["cpu_s"] = round(time.process_time() - begun, 1)
        known[name] = found
        with RESULTS.open("a") as file:
            file.write(json.dumps(found) + "\n")
    return known


def report(known: dict[str, dict]) -> str:
    """Return how many models ran, and which did not and why."""
    ran = [found for found in known.values() if "skipped" not in found]
    right = [found for found in ran if is_right(found)]
    parallel = sum("parallel_logits" in found for found in right)
    lines = [f"{len(right)} of {len(ran)} models with the logits and gradients of PyTorch, {parallel} on two devices"]
    for found in ran:
        if not is_right(found):
            numbers = {key: value for key, value in found.items() if key not in ("model", "size", "cpu_s")}
            reason = found.get("error") or ", ".join(f"{key} {value:.1e}" for key, value in numbers.items())
            lines.append(f"{found['model']}: {reason}")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--below", type=float, help="millions of parameters")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    below = None if options.below is None else 1e6 * options.below
    print(report(results() if options.report else go_on(options.minutes, below)))
