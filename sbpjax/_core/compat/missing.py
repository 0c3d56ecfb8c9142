"""`MissingPlaceholder`: placeholder of a lazy alias for an absent name, so that a library can be imported around it."""

from __future__ import annotations

from typing import Any

from sbpjax.errors import UnknownNameError, page


def page_of(peer: str) -> str:
    """Return the page that lists which names of another package there are."""
    return page("how_to/torch_scripts.md") if peer == "torch" else page("reference/api_coverage.md")


class MissingPlaceholder:
    """Placeholder for a missing name; any use but a mention raises an error with the name.

    It may be a base class, part of a union of types, an argument of ``isinstance`` (which nothing is), and has
    attributes, which are missing too.
    """

    def __init__(self, name: str, peer: str) -> None:
        self.__dict__.update(_name=name, _peer=peer)

    def _error(self) -> UnknownNameError:
        return UnknownNameError(
            f"{self._name}",
            "a placeholder, from an alias that was enabled with lazy=True",
            f"sbpjax has nothing under this name of {self._peer}",
            f"see {page_of(self._peer)} for the names that exist",
            name=self._name.rpartition(".")[2],
            obj=self,
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return MissingPlaceholder(f"{self._name}.{name}", self._peer)

    def __call__(self, *args, **kwargs):
        raise self._error()

    def __iter__(self):
        raise self._error()

    def __mro_entries__(self, bases) -> tuple:
        error = self._error

        def __init__(self, *args, **kwargs):
            raise error()

        return (type(self._name.rpartition(".")[2], (), {"__init__": __init__}),)

    def __or__(self, other) -> Any:
        return Any

    __ror__ = __or__

    def __instancecheck__(self, instance) -> bool:
        return False

    def __subclasscheck__(self, subclass) -> bool:
        return False

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"<missing {self._name}>"
