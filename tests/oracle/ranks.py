"""Recorded snippets, run on four ranks as OneFlow's four processes ran them: `sbpjax.simulate` gives each a thread.

A rank that fails ends alone, as a process does; the others learn of it where they wait for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sbpjax._core.tensor.handle.tensor import Tensor


@dataclass
class Ended:
    """How a rank's run of a snippet ended.

    Attributes:
        value: what the variable ``R`` held.
        error: the exception that it raised instead.
    """

    value: Any = None
    error: BaseException | None = None


def plain(value):
    """Return a value as lists, numbers and strings."""
    if isinstance(value, Tensor):
        return value.numpy().tolist()
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def run_snippet(prelude: str, code: str, flow, count: int = 4) -> list[Ended]:
    """Run a recorded snippet on ``count`` ranks."""
    program = compile(f"{prelude}\n{code}", "<snippet>", "exec")

    @flow.simulate(ranks=count)
    def run() -> Ended:
        names = {"flow": flow, "np": np, "r": flow.env.get_rank()}
        try:
            exec(program, names)
            return Ended(plain(names.get("R")))
        except Exception as error:
            return Ended(error=error)

    return run()


__all__ = ["Ended", "plain", "run_snippet"]
