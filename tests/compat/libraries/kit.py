"""Weights, inputs and training loops that the programs share: all numbers come from NumPy, so both runs have the same.

    model = fill(resnet18())                    # weights by name and shape, not by the library's generator
    losses = train(model, lambda i: loss, steps=3)

A program imports `torch` itself, and runs under the alias and with PyTorch alike.
"""

import time
import zlib

import numpy as np
import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook


class StepClock:
    """CPU seconds of the first two steps of every optimizer, each from the first call of a module to its step's end.

    with StepClock() as clock:       # hooks of all modules and optimizers: any loop counts, also a library's
        program()
    clock.seconds()                  # the sum over the optimizers, None without two steps of one
    """

    def __enter__(self):
        self.start, self.steps = None, {}
        self._handles = [self._wait(), register_optimizer_step_post_hook(self._finish_step)]
        return self

    def __exit__(self, *error):
        for handle in self._handles:
            handle.remove()

    def _wait(self):
        return register_module_forward_pre_hook(self._start_step)

    def _start_step(self, module, args):
        if module.training and torch.is_grad_enabled():
            self.start = time.process_time()
            self._handles[0].remove()

    def _finish_step(self, optimizer, args, kwargs):
        times = self.steps.setdefault(optimizer, [])
        if self.start is not None:
            times.append(time.process_time() - self.start)
            self.start, self._handles[0] = None, self._wait()

    def seconds(self):
        """Return the sum of the first two steps of the optimizers that took two."""
        found = [sum(times[:2]) for times in self.steps.values() if len(times) > 1]
        return round(sum(found), 3) if found else None


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
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(step)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def digest(value):
    """Return a few numbers of a tensor: its mean, deviation, extremes and a weighted sum."""
    array = np.asarray(value.detach().float().cpu().numpy(), np.float64).ravel()
    weights = np.cos(np.arange(array.size))
    return [array.mean(), array.std(), array.min(), array.max(), float((array * weights).mean())]
