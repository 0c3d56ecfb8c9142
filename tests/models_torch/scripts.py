"""Short scripts as users of PyTorch write them; each returns what it computed, as NumPy arrays and numbers."""

from collections import defaultdict

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import LambdaLR, StepLR


def weights(module, seed):
    """Fill a module with numbers that do not depend on the library's random streams."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)).astype(np.float32) * 0.3))
    return module


def data(seed, n=32):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 6)).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy((x[:, 0] * x[:, 1] > 0).astype(np.int64))


def training_loop():
    """Batches, clipping, a schedule, evaluation without grad, statistics kept in place."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = weights(nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 2)), 0).to(device)
    decay, no_decay = [], []
    for p in model.parameters():
        (no_decay if p.ndim <= 1 else decay).append(p)
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": no_decay, "weight_decay": 0.0}], lr=0.01
    )
    scheduler = LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 3))
    criterion = nn.CrossEntropyLoss(reduction="none")
    x, y = (t.to(device) for t in data(1))
    history, meter = [], torch.zeros(2)
    for _ in range(2):
        model.train()
        for xb, yb in zip(x.split(8), y.split(8)):
            optimizer.zero_grad(set_to_none=True)
            losses = criterion(model(xb), yb)
            loss = losses.mean()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5)
            optimizer.step()
            scheduler.step()
            meter[0] += losses.detach().sum()
            meter[1] += len(xb)
            history.append([loss.item(), float(norm), optimizer.param_groups[0]["lr"]])
        model.eval()
        with torch.no_grad():
            accuracy = (model(x).argmax(dim=1) == y).float().mean().item()
    return {
        "history": np.array(history),
        "meter": meter.numpy(),
        "accuracy": accuracy,
        "weight": model[3].weight.detach().numpy(),
    }


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(6, 4, bias=False), nn.Linear(4, 6)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x):
        self.steps += 1
        hidden = torch.relu(self.encoder(x)) * self.scale
        return F.linear(hidden, self.encoder.weight.t(), self.decoder.bias)


def hooks_and_checkpoints():
    """Hooks on modules and tensors, saving to a buffer, loading into another model and optimizer."""
    model = weights(Tied(), 2)
    seen = defaultdict(list)
    handle = model.encoder.register_forward_hook(lambda m, args, out: seen["shape"].append(tuple(out.shape)))
    model.scale.register_hook(lambda g: seen["grad"].append(g.item()) or g * 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    scheduler = StepLR(optimizer, step_size=2, gamma=0.5)
    x, _ = data(3)

    def step(model, optimizer, scheduler):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
        scheduler.step()
        return loss.item()

    losses = [step(model, optimizer, scheduler) for _ in range(3)]
    handle.remove()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}
    other = weights(Tied(), 4)
    other.load_state_dict(state["model"])
    other.scale.register_hook(lambda g: g * 2)
    again = torch.optim.SGD(other.parameters(), lr=1.0, momentum=0.9, nesterov=True)
    schedule = StepLR(again, step_size=2, gamma=0.5)
    again.load_state_dict(state["optimizer"])
    schedule.load_state_dict(state["scheduler"])
    resumed = [step(other, again, schedule) for _ in range(2)]
    return {
        "losses": np.array(losses + resumed),
        "lr": again.param_groups[0]["lr"],
        "steps": int(other.steps),
        "grads": np.array(seen["grad"]),
        "calls": len(seen["shape"]),
        "keys": sorted(state["model"]),
    }


def in_place_and_indexing():
    """Writes through views, masks, scatter, rows that are iterated over, gradients through them."""
    base = torch.arange(12.0).reshape(3, 4)
    leaf = base.clone().requires_grad_()
    x = leaf * 1
    x[1:, ::2] *= 3
    x[x > 20] = 0.5
    for i in range(len(x)):
        row = x[i]
        row[0] = row[1] + 1
    with torch.no_grad():
        for row in base:
            row[-1] = 0
    x.t()[3].add_(10)
    out = torch.zeros(3, 5).scatter_add_(1, torch.tensor([[0, 1, 1, 4], [2, 2, 2, 2], [0, 0, 3, 3]]), x)
    (out**2).sum().backward()
    values, indices = (out + torch.arange(5) * 1e-3).topk(2, dim=1)
    window = base.unfold(1, 2, 1).sum(-1)
    return {
        "x": x.detach().numpy(),
        "grad": leaf.grad.numpy(),
        "values": values.detach().numpy(),
        "indices": indices.numpy(),
        "base": base.numpy(),
        "window": window.numpy(),
        "any": bool((out == 0).any()),
    }


def own_function():
    """A straight-through estimator as an autograd.Function, gradients of gradients, accumulated gradients."""

    class Round(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x)
            ctx.scale = scale
            return torch.round(x * scale) / scale

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * (x.abs() < 2), None

    x = torch.linspace(-3, 3, 13, requires_grad=True)
    for _ in range(2):
        (Round.apply(x, 4.0) ** 2).mean().backward()
    w = torch.tensor([1.5, -0.5], requires_grad=True)
    (g,) = torch.autograd.grad((w**3).sum(), w, create_graph=True)
    penalty = (g.norm() - 1) ** 2
    penalty.backward()
    return {"x": x.grad.numpy(), "w": w.grad.numpy(), "penalty": penalty.item()}


SCRIPTS = [training_loop, hooks_and_checkpoints, in_place_and_indexing, own_function]
