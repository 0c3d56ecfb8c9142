"""Channel layout arguments of OneFlow's image functions: ``data_format`` and ``channel_pos``.

Worked case: ``max_pool2d(x, 2, data_format="channels_last")`` of an x of shape (N, H, W, C) pools H and W, and gives
(N, H / 2, W / 2, C). The functions here have the channels in dim 1; the others are moved there and back, at the cost of
a transpose that XLA folds into its neighbours where it can.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor.calls.binding import into_out

FIRST, LAST = "channels_first", "channels_last"


def channels(name: str, weight: bool = False, last: bool = True) -> Callable:
    """Return a decorator that adds an argument for the position of the channels.

    Args:
        name: of the argument, ``"data_format"`` or ``"channel_pos"``.
        weight: whether the second argument is a weight, which has its channels there too.
        last: whether they may be in the last dim.
    """

    def decorate(function: Callable) -> Callable:
        own = inspect.signature(function)
        option = inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=FIRST)
        by_name = [p for p in own.parameters.values() if p.kind is p.KEYWORD_ONLY]
        places = [p for p in own.parameters.values() if p.kind is not p.KEYWORD_ONLY]
        most = len(places)

        @functools.wraps(function)
        def public(*args: Any, **options: Any) -> Any:
            where = args[most] if len(args) > most else options.pop(name, FIRST)
            args = args[:most]
            if where == FIRST:
                return function(*args, **options)
            if where != LAST or not last:
                known = f"{FIRST!r} or {LAST!r}" if last else repr(FIRST)
                operation = f"{function.__name__}({name}={where!r})"
                fail("value", operation, repr(where), f"{name} is {known}", f"{name}={FIRST!r}, after x.movedim(-1, 1)")
            target = options.pop("out", None)
            given = own.bind(*args, **options).arguments
            for moved in list(given)[: 2 if weight else 1]:
                given[moved] = given[moved].movedim(-1, 1)
            out = function(**given)
            out = tuple(o.movedim(1, -1) for o in out) if isinstance(out, tuple) else out.movedim(1, -1)
            return out if target is None else into_out(target, out)

        public.__signature__ = own.replace(parameters=[*places, option, *by_name])  # type: ignore[attr-defined]
        return public

    return decorate
