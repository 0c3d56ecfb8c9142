"""`ExceptionWrapper`: an exception that can be pickled, for datasets that catch their own errors.

try:
    sample = self.load(index)
except Exception:
    return ExceptionWrapper(where=f"loading {index}")
...
sample.reraise()
"""

from __future__ import annotations

import sys
import traceback


class ExceptionWrapper:
    """The class and the traceback's text of an exception, by default of the one that is being handled.

    Args:
        exc_info: the result of `sys.exc_info`.
        where: the action that failed, for the message.
    """

    def __init__(self, exc_info: tuple | None = None, where: str = "in background") -> None:
        info = sys.exc_info() if exc_info is None else exc_info
        self.exc_type = info[0]
        self.exc_msg = "".join(traceback.format_exception(*info))
        self.where = where

    def reraise(self) -> None:
        """Raise an exception of the class, with the original traceback in its text."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:  # whose str() is a repr, without lines
            text = type("_Text", (str,), {"__repr__": str.__str__})(text)
        try:
            error = self.exc_type(text)
        except TypeError:  # its class takes other arguments
            raise RuntimeError(text) from None
        raise error
