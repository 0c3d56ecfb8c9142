"""Weights, inputs and training loops that the programs share: all numbers come from NumPy, so both runs have the same.

    model = fill(resnet18())                    # weights by name and shape, not by the library's generator
    losses = train(model, lambda i: loss, steps=3)

A program imports `torch` itself, and runs under the alias and with PyTorch alike.
"""

import time
import zlib

import numpy as np
import torch

TWO_STEPS_S: list[float] = []  # CPU time of the first two steps of each call of `train`


def numbers(name, *shape, scale=1.0):
    """Return an array of a name: the same in every process."""
    return (np.random.default_rng(zlib.crc32(name.encode())).standard_normal(shape) * scale).astype(np.float32)


def fill(model):
    """Give every parameter and buffer of floats values by its name and shape alone, and return the model."""
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if not value.dtype.is_floating_point:
                continue
            shape = tuple(value.shape)
            if "running_var" in name or (len(shape) == 1 and name.endswith("weight")):
                made = np.abs(numbers(name, *shape, scale=0.1)) + 1.0
            else:
                fan = int(np.prod(shape[1:])) if len(shape) > 1 else 0
                made = numbers(name, *shape, scale=fan**-0.5 if fan else 0.02)
            value.copy_(torch.from_numpy(np.asarray(made)))
    return model


def tensor(name, *shape, scale=1.0):
    """Return a tensor of floats of a name."""
    return torch.from_numpy(numbers(name, *shape, scale=scale))


def integers(name, high, *shape):
    """Return a tensor of integers below a number."""
    made = np.random.default_rng(zlib.crc32(name.encode())).integers(0, high, shape)
    return torch.from_numpy(made)


def train(model, loss_of, steps=3, optimizer=None, lr=0.01):
    """Return the losses of some steps of SGD, or of another optimizer."""
    model.train()
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    losses, start = [], time.process_time()
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(step)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step == 1:
            TWO_STEPS_S.append(time.process_time() - start)
    return losses


def digest(value):
    """Return a few numbers of a tensor: its mean, deviation, extremes and a weighted sum."""
    array = np.asarray(value.detach().float().cpu().numpy(), np.float64).ravel()
    weights = np.cos(np.arange(array.size))
    return [array.mean(), array.std(), array.min(), array.max(), float((array * weights).mean())]
