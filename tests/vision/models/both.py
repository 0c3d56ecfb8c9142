"""One member of a family twice, ours and timm's with the same random weights."""

from __future__ import annotations

import functools

import numpy as np

import sbpjax as flow
from tests.support.timm_alone import timm

LOGITS, GRADIENTS = 1e-4, 1e-3  # of the largest element
CLASSES = 7


def random_state(model, seed=0):
    """Give timm's model numbers that no layer can be left out of unseen, and return it, in eval mode."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    for name, value in model.state_dict().items():
        if not value.is_floating_point():
            continue
        drawn = torch.randn(value.shape, generator=generator)
        if name.endswith("running_var"):
            value += 0.3 * drawn.abs()
        elif value.ndim < 2 or name.endswith(("table", "token", "pos_embed")):
            value += 0.1 * drawn
        else:  # products keep the size of what they read
            value.copy_(drawn / value[0].numel() ** 0.5)
    return model.eval()


def first_blocks(model):
    """Leave one block of each stage of timm's model, and of a single row of blocks two."""
    import torch

    for stage in model.blocks if isinstance(model.blocks[0], torch.nn.Sequential) else []:
        del stage[1:]
    if not isinstance(model.blocks[0], torch.nn.Sequential):
        del model.blocks[2:]


def theirs_and_file(name, options, folder):
    """Return timm's model with random weights, and the file that they are saved in."""
    from safetensors.torch import save_file

    options = dict(options)
    cut = options.pop("cut", None)
    model = timm().create_model(name, num_classes=CLASSES, **options)
    if cut is not None:
        cut(model)
    model = random_state(model)
    file = folder / f"{name}.safetensors"
    save_file({k: v.contiguous() for k, v in model.state_dict().items()}, file)
    return model, file


def check_against_timm(name, folder, theirs, ours, size=32, batch=2):
    """Assert that both give the same logits, and the same gradient of their weighted sum by the images.

    Args:
        name: of both, in timm's registry and in ours.
        folder: where the weights are saved on the way.
        theirs: options of timm's `create_model` that make it small; ``cut`` is a function that does.
        ours: options of our own.
        size: height and width of images.
        batch: how many.
    """
    import torch

    model, file = theirs_and_file(name, theirs, folder)
    made = flow.vision.create_model(name, num_classes=CLASSES, checkpoint=file, **ours).eval()
    assert sum(p.numel() for p in made.parameters()) == sum(p.numel() for p in model.parameters())
    x = torch.randn(batch, 3, size, size, generator=torch.Generator().manual_seed(1), requires_grad=True)
    wanted = model(x)
    (wanted * torch.arange(1, CLASSES + 1)).sum().backward()

    @flow.compile
    def step(images):
        logits = made(images)
        (gradient,) = flow.autograd.grad((logits * flow.arange(1, CLASSES + 1)).sum(), images)
        return logits, gradient

    logits, gradient = step(flow.tensor(x.detach().numpy(), requires_grad=True))

    @functools.cache
    def exact():
        y = x.detach().double().requires_grad_()
        found = model.double()(y)
        (found * torch.arange(1, CLASSES + 1)).sum().backward()
        return found.detach().numpy(), y.grad.numpy()

    close(logits, wanted, LOGITS, lambda: exact()[0])
    close(gradient, x.grad, GRADIENTS, lambda: exact()[1])


def close(ours, theirs, tolerance, exact=None):
    """Assert that no element differs by more than a part of the largest, or that ours are the better ones.

    A gradient jumps where the input of a ReLU is 0. Of millions of them one may be so near that float32 rounds it to
    the other side, in PyTorch or here: two right answers then differ in the percents (timm's efficientvit_m1 under
    `timm_sweep`: one of 1,682,016, by 2.3e-2). What counts then is how far each is from the answer of float64.

    Args:
        ours: tensor.
        theirs: PyTorch's, in float32.
        tolerance: the part.
        exact: returns PyTorch's in float64.
    """
    ours, theirs = ours.detach().numpy(), theirs.detach().numpy()
    assert np.isfinite(theirs).all() and np.abs(theirs).max() > 0
    if np.abs(ours - theirs).max() <= tolerance * np.abs(theirs).max():
        return
    assert exact is not None
    true = exact()
    error, limit = np.abs(ours - true).max(), tolerance * np.abs(true).max()
    assert error <= max(limit, np.abs(theirs - true).max()), (error, np.abs(theirs - true).max(), limit)
