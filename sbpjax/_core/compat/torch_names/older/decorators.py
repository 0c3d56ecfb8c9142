"""`torch.utils._contextlib`: bases of context managers that are decorators, too.

class quiet(_DecoratorContextManager): ...

@quiet()                # each call enters a context manager of its own
def f(x): ...
"""

from __future__ import annotations

import contextlib
from typing import Any


class _DecoratorContextManager(contextlib.ContextDecorator):
    """A context manager whose instances decorate functions; ``clone()`` returns the one of a call."""

    def clone(self) -> Any:
        """Return an instance for a call; a class with arguments overrides it."""
        return type(self)()

    def _recreate_cm(self) -> Any:
        return self.clone()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One whose class decorates a function without being called."""

    def __new__(cls, orig_func: Any = None) -> Any:
        return super().__new__(cls) if orig_func is None else cls()(orig_func)
