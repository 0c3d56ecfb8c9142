"""Run a model file twice, as PyTorch runs it and with `torch` answered by sbpjax, from the same weights and inputs.

The file is executed as it is: once plainly, once inside ``mock_torch.enable()``. A file defines ``build()``,
``example(rng)`` (a dict of NumPy arrays), ``loss(model, batch)`` → (scalar, dict of outputs) and, if there is more to
compare, ``more(model, batch)``.
"""

import importlib.util
from pathlib import Path

import numpy as np
import torch

import sbpjax
from sbpjax import mock_torch

HERE = Path(__file__).parent
TOLERANCE = 1e-4  # of values, and of gradients relative to the largest element


def load(name, mocked):
    """Execute a file of this directory as a module of its own."""
    spec = importlib.util.spec_from_file_location(
        f"{__package__}.{name}_{'mocked' if mocked else 'real'}", HERE / f"{name}.py"
    )
    module = importlib.util.module_from_spec(spec)
    if not mocked:
        spec.loader.exec_module(module)
        return module
    with mock_torch.enable():
        spec.loader.exec_module(module)
    return module


def to_numpy(value):
    """Return the values of a tensor of either kind."""
    if isinstance(value, sbpjax.Tensor):
        return (value.to_local() if value.is_global else value).detach().numpy()
    return value.detach().numpy()


def everything(file, model, batch, more=True):
    """Return what a training step of a model gives: outputs, loss, gradients, state after it, and `more`."""
    model.train()
    value, outputs = file.loss(model, batch)
    value.backward()
    found = {"loss": value, **{f"output {k}": v for k, v in outputs.items()}}
    found.update({f"gradient {k}": p.grad for k, p in model.named_parameters() if p.grad is not None})
    found.update({f"state {k}": v for k, v in model.state_dict().items()})
    if more and hasattr(file, "more"):
        found.update({f"more {k}": v for k, v in file.more(model, batch).items()})
    return {k: to_numpy(v) for k, v in found.items()}


def expected(name, seed=0):
    """Return the file's weights, its inputs and what PyTorch makes of them."""
    torch.manual_seed(seed)
    file = load(name, mocked=False)
    model = file.build()
    weights = {k: v.detach().clone().numpy() for k, v in model.state_dict().items()}
    arrays = file.example(np.random.default_rng(seed))
    return weights, arrays, everything(file, model, {k: torch.from_numpy(v) for k, v in arrays.items()})


def mocked_model(name, weights):
    """Return the file run with `torch` answered by sbpjax, and its model with the given weights."""
    file = load(name, mocked=True)
    model = file.build()
    missing = model.load_state_dict({k: sbpjax.from_numpy(v.copy()) for k, v in weights.items()})
    assert not missing.missing_keys and not missing.unexpected_keys
    return file, model


def check(found, wanted):
    """Compare by name; a gradient against the largest element of its tensor."""
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        assert found[name].shape == value.shape, name
        assert found[name].dtype == value.dtype, name
        scale = max(1.0, float(np.abs(value).max())) if value.size and value.dtype.kind == "f" else 1.0
        np.testing.assert_allclose(found[name], value, rtol=TOLERANCE, atol=TOLERANCE * scale, err_msg=name)
