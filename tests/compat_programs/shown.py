"""What the programs share: tensors of known values, and `show`, which notes a result in a form that can be compared."""

import json
import os
import re

import numpy as np
import oneflow as flow

sink = None  # where the lines go: a function, else the file that COMPAT_OUT names (a rank each), else the screen


def fixed(*shape, seed=0):
    """Return a float32 tensor of normal numbers that depend on shape and seed alone."""
    return flow.tensor(np.random.RandomState(seed).randn(*shape).astype(np.float32))


def fill(module, seed=0, scale=0.3):
    """Set the parameters of a module to known values."""
    with flow.no_grad():
        for i, parameter in enumerate(module.parameters()):
            parameter.copy_(fixed(*parameter.shape, seed=seed + i) * scale)


def show(name, value):
    """Note a result: values, shapes, dtypes and layouts of tensors, and whatever else has a plain form."""
    line = json.dumps([name, _plain(value)])
    if sink is not None:
        sink(line)
    elif "COMPAT_OUT" in os.environ:
        with open(f"{os.environ['COMPAT_OUT']}.{flow.env.get_rank()}", "a") as file:
            file.write(line + "\n")
    else:
        print(line)


def _plain(value):
    if isinstance(value, flow.Tensor):
        array = value.detach().numpy()
        layout = {"sbp": _plain(value.sbp), "placement": _plain(value.placement)} if value.is_global else {}
        return {"tensor": _numbers(array), "shape": list(array.shape), "dtype": _plain(value.dtype), **layout}
    if isinstance(value, (np.ndarray, np.generic)):
        return {"array": _numbers(np.asarray(value)), "shape": list(value.shape), "dtype": str(value.dtype)}
    if isinstance(value, flow.Size):
        return {"size": [int(n) for n in value]}
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [_plain(v) for v in value]}
    if isinstance(value, dict):
        return {"dict": {str(k): _plain(value[k]) for k in sorted(value, key=str)}}
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return _number(value)
    return re.sub(r"\b(oneflow|sbpjax)\.", "", str(value))


def _numbers(array):
    return [_number(v) for v in array.reshape(-1).tolist()]


def _number(value):
    return float(f"{value:.6g}") if isinstance(value, float) else value
