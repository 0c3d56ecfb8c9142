"""Subclasses of `torch.Tensor`: their class is kept, ``__torch_function__`` decides, and PyTorch does the same."""

import pytest
import torch as real

from sbpjax import mock_torch


def programs(torch):
    """Yield the names of classes that a program sees, and values."""

    class Plain(torch.Tensor):
        pass

    x = torch.arange(4.0).as_subclass(Plain)
    for made in (x + 1, 1 - x, x.sum(), x[1:], x.clone(), torch.ones(4) * x, x.split(2)[0], x.max(0)[0], -x, x == x):
        yield type(made).__name__
        yield made.tolist()
    yield type(x.as_subclass(torch.Tensor)).__name__
    x.add_(1)
    x[0] = 9.0
    yield type(x).__name__, x.tolist()
    weight = torch.ones(4, requires_grad=True)
    (x * weight).sum().backward()
    yield weight.grad.tolist()
    leaf = torch.Tensor._make_subclass(Plain, torch.ones(2), True)
    yield type(leaf).__name__, leaf.requires_grad, leaf.is_leaf

    class Tagged(torch.nn.Parameter):
        def __new__(cls, data, tag=None, requires_grad=True):
            made = super().__new__(cls, data, requires_grad)
            made.tag = tag
            return made

    class Curved(torch.nn.Parameter):
        def __new__(cls, data, tag=None):
            made = torch.Tensor._make_subclass(cls, data, True)
            made.tag = tag
            return made

    class Noted(torch.nn.Parameter):
        def __init__(self, data, requires_grad=True):
            self.tag = "noted"

    for kind, options in ((Tagged, {"tag": "tagged"}), (Curved, {"tag": "curved"}), (Noted, {})):
        module = torch.nn.Module()
        module.weight = kind(torch.ones(2), **options)
        (module.weight * 2).sum().backward()
        torch.optim.SGD(module.parameters(), lr=0.1).step()
        yield type(module.weight).__name__, module.weight.tag, module.weight.is_leaf, module.weight.grad.tolist()

    class Rows:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "rows", func is torch.stack, len(args[0]), sorted(kwargs or {})

    yield torch.stack([Rows(), Rows()], dim=1)

    class Ball(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.curvature = torch.nn.Parameter(torch.ones(1))

        @property
        def curvature(self):
            return self.no_such_field

    yield list(Ball()._parameters)
    yield torch.nn.modules.module._global_parameter_registration_hooks == {}

    class Counted(torch.Tensor):
        seen = []

        def __new__(cls, data, *, unit):
            made = torch.as_tensor(data).as_subclass(cls)
            made.unit = unit
            return made

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.seen.append((func.__name__, len(args)))
            with torch._C.DisableTorchFunctionSubclass():
                out = func(*args, **(kwargs or {}))
            if func in {torch.Tensor.clone, torch.Tensor.to}:
                return out.as_subclass(cls)
            return out.as_subclass(torch.Tensor) if isinstance(out, cls) else out

        def double(self):
            return "own"

    y = Counted([1.0, 2.0], unit="m")
    yield y.unit, type(y.clone()).__name__, type(y.to(torch.float64)).__name__, type(y.exp()).__name__, y.double()
    yield Counted.seen

    class Refusing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="Multiple dispatch failed"):
        torch.ones(2).as_subclass(Refusing).exp()


def test_subclasses_behave_as_in_pytorch():
    with mock_torch.enable():
        import torch

        ours = list(programs(torch))
    theirs = list(programs(real))
    for found, wanted in zip(ours, theirs, strict=True):
        assert found == wanted
