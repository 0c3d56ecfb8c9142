"""`torch.fx`: absent names; programs are captured as jaxprs here."""

from __future__ import annotations

from .absent import absent

_WHY = "torch.fx captures a program in a representation of its own; here programs are jaxprs"
_USE = "graph = nn.Graph(...); graph.plan()  # or jax.make_jaxpr of a function from nn.to_pure(module)"


def wrap(fn_or_name):
    """Return the function itself."""
    return fn_or_name


def symbolic_trace(root, concrete_args=None):
    """Raise: there is no such representation here."""
    return GraphModule(root)


class Node:
    """Nothing is of this class."""


class Proxy:
    """Nothing is of this class."""


Graph = absent("torch.fx.Graph", _WHY, _USE)
GraphModule = absent("torch.fx.GraphModule", _WHY, _USE)
Tracer = absent("torch.fx.Tracer", _WHY, _USE)
