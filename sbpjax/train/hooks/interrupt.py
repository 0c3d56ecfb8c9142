"""`StopOnInterrupt`: the first Ctrl-C ends a run after the current step, the second one immediately."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Any

from sbpjax import env

from .hook import Hook

if TYPE_CHECKING:
    from sbpjax.train.trainer import Trainer

_NOTE = b"interrupt: the run stops after this step; another Ctrl-C stops it immediately\n"


class StopOnInterrupt(Hook):
    """Stop the run after the step in which SIGINT arrives; `Checkpoints` then saves.

    The training command adds it. It does nothing with several processes (an interrupt reaches them in different steps),
    outside the main thread, and where the program has a handler of its own or ignores the signal.

    Attributes:
        interrupted: whether SIGINT arrived during the run.

    Example:
        >>> StopOnInterrupt().interrupted
        False
    """

    def __init__(self) -> None:
        self.interrupted = False
        self._is_installed = False

    def before_run(self, trainer: Trainer) -> None:
        """Install the handler."""
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and env.get_world_size() == 1 and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._handle)
            self._is_installed = True

    def _handle(self, number: int, frame: Any) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self.interrupted = True
        os.write(2, _NOTE)  # a handler may run inside a write to sys.stderr, which is not reentrant

    def after_step(self, trainer: Trainer) -> None:
        """Stop the run if the signal arrived."""
        if self.interrupted:
            trainer.stop("interrupt")

    def after_run(self, trainer: Trainer) -> None:
        """Restore Python's handler."""
        if self._is_installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._is_installed = False
