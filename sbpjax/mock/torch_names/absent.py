"""How names of another runtime answer: they exist, since libraries mention them, and say what to use instead.

Reader = absent("torch.distributed.checkpoint.Reader", "files of PyTorch's own shards", "sbpjax.load(path)")
isinstance(x, Reader)        # False
Reader("path")               # NotInJaxError, which says both
Reader.open                  # a name of that name: it can be mentioned, too
"""

from __future__ import annotations

from typing import Any

from sbpjax.errors import NotInJaxError, message


class _Absent(type):
    """The type of absent names: what lies under one is absent, too."""

    def __getattr__(cls, name: str) -> Any:
        said = cls.__dict__.get("_said")
        if said is None or name.startswith("__"):
            raise AttributeError(name)
        made = absent(f"{said[0]}.{name}", *said[1:])
        setattr(cls, name, made)
        return made


def absent(name: str, why: str, instead: str) -> Any:
    """Return a class that cannot be made or called, and says why.

    Args:
        name: the full name in PyTorch.
        why: what it belongs to.
        instead: one line that does what it is for.
    """

    def __new__(cls, *args, **kwargs):
        raise NotInJaxError(message(f"{name}(...)", "a name that stands here to be mentioned only", why, instead))

    last = name.rpartition(".")[2]
    fields = {"__doc__": f"{name} is not here: {why}.", "__module__": __name__, "_said": (name, why, instead)}
    return _Absent(last, (), {"__new__": __new__, **fields})


def absences(space: str, why: str, instead: str) -> Any:
    """Return a module's ``__getattr__`` under which every name is absent.

    Args:
        space: the module's name in PyTorch.
        why: what it belongs to.
        instead: one line that does what it is for.
    """
    made: dict[str, Any] = {}

    def __getattr__(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in made:
            made[name] = absent(f"{space}.{name}", why, instead)
        return made[name]

    return __getattr__
