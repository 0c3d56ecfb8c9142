"""Absent names: PyTorch classes that libraries mention; using one raises an error with its replacement.

Reader = absent("torch.distributed.checkpoint.Reader", "files of PyTorch's own shards", "sbpjax.load(path)")
isinstance(x, Reader)        # False
Reader("path")               # NotInJaxError with both texts
Reader.open                  # a name of that name: it can be mentioned, too

`SPACES` are whole modules of such names: ``sparse`` here answers to ``torch.sparse``.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from sbpjax.errors import NotInJaxError


class _Absent(type):
    """The type of absent names: attributes of one are absent, too."""

    def __getattr__(cls, name: str) -> Any:
        said = cls.__dict__.get("_said")
        if said is None or name.startswith("__"):
            raise AttributeError(name)
        made = absent(f"{said[0]}.{name}", *said[1:])
        setattr(cls, name, made)
        return made


def absent(name: str, why: str, instead: str) -> Any:
    """Return a class that cannot be made or called, and raises an error with the reason.

    Args:
        name: the full name in PyTorch.
        why: its subject.
        instead: one line that does the same.
    """

    def __new__(cls, *args, **kwargs):
        raise NotInJaxError(f"{name}(...)", "a name that exists for imports and isinstance only", why, instead)

    last = name.rpartition(".")[2]
    fields = {"__doc__": f"{name} is not here: {why}.", "__module__": __name__, "_said": (name, why, instead)}
    return _Absent(last, (), {"__new__": __new__, **fields})


def absences(space: str, why: str, instead: str) -> Any:
    """Return a module's ``__getattr__`` under which every name is absent.

    Args:
        space: the module's name in PyTorch.
        why: its subject.
        instead: one line that does the same.
    """
    made: dict[str, Any] = {}

    def __getattr__(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in made:
            made[name] = absent(f"{space}.{name}", why, instead)
        return made[name]

    return __getattr__


_DISTRIBUTED = "python -m sbpjax.distributed.launch script.py, and a global module"
SPACES = {  # the reason, and the replacement
    "ao": ("quantised layers are kernels of PyTorch's own", "sbpjax.nn.QatConv2d, sbpjax.nn.FakeQuantization"),
    "distributions": (
        "only the distributions of neural networks are here",
        "NumPyro's, through sbpjax.wrap_jax: docs/how_to/flax_and_jax.md",
    ),
    "distributed.optim": ("states of optimizers are split by layouts here", _DISTRIBUTED),
    "distributed.elastic": ("processes are started by a launcher here", _DISTRIBUTED),
    "distributed.rpc": ("processes run the same program here", "sbpjax.distributed.send, recv"),
    "export": ("exported programs hold PyTorch's own graphs", "graph.export(path)  # of an nn.Graph, as StableHLO"),
    "nested": ("tensors have one shape here", "nn.utils.rnn.pad_sequence(rows, batch_first=True)"),
    "sparse": ("tensors are dense here", "a dense tensor, or index_add and gather"),
    "_subclasses": ("JAX traces programs", "jax.eval_shape, or device='meta'"),
    "utils.flop_counter": (
        "it counts the ops of PyTorch's dispatcher",
        "jax.jit(fn).lower(*args).cost_analysis()['flops']",
    ),
}
for _name, (_why, _instead) in SPACES.items():
    _module = ModuleType(f"{__name__}.{_name}", f"torch.{_name} is not here: {_why}.")
    _module.__dict__["__getattr__"] = absences(f"torch.{_name}", _why, _instead)
    sys.modules[_module.__name__] = _module
