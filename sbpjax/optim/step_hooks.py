"""Hooks before and after the steps of an optimizer, or of every optimizer."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from sbpjax._core.tensor.nodes.node import RemovableHandle

_before_steps: OrderedDict[int, Callable] = OrderedDict()
_after_steps: OrderedDict[int, Callable] = OrderedDict()


def with_step_hooks(step: Callable) -> Callable:
    """Run the hooks of steps around a method; a step within it, such as that of its base class, runs none."""

    @functools.wraps(step)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        fields = vars(self)
        own = fields.get("_step_pre_hooks", {}), fields.get("_step_post_hooks", {})
        before, after = [*_before_steps.values(), *own[0].values()], [*own[1].values(), *_after_steps.values()]
        if not (before or after) or "_is_stepping" in fields:
            return step(self, *args, **kwargs)
        fields["_is_stepping"] = True
        try:
            for hook in before:
                args, kwargs = hook(self, args, kwargs) or (args, kwargs)
            result = step(self, *args, **kwargs)
            for hook in after:
                hook(self, args, kwargs)
        finally:
            del fields["_is_stepping"]
        return result

    return call


def register_optimizer_step_pre_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before every step of every optimizer."""
    return RemovableHandle(_before_steps, hook)


def register_optimizer_step_post_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after every step of every optimizer."""
    return RemovableHandle(_after_steps, hook)
