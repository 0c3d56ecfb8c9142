"""`HookMethods`: the ``register_..._hook`` methods of `Module`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sbpjax._core.tensor.nodes.node import RemovableHandle


class HookMethods:
    """Methods of `Module` that register hooks; each returns a handle whose `remove` unregisters the hook."""

    def _add_hook_to(self, table: str, value: Any, prepend: bool = False) -> RemovableHandle:
        handle = RemovableHandle(self.__dict__[table], value)
        if prepend:
            self.__dict__[table].move_to_end(handle.id, last=False)
        return handle

    def register_forward_pre_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before every forward; its result (if not None) replaces the arguments."""
        return self._add_hook_to("_forward_pre_hooks", (hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after every forward; its result (if not None) replaces the output."""
        return self._add_hook_to("_forward_hooks", (hook, with_kwargs, always_call), prepend)

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before the module's backward; a result replaces `grad_output`."""
        return self._add_hook_to("_backward_pre_hooks", hook, prepend)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` after the module's backward; may return a new `grad_input`."""
        return self._add_hook_to("_backward_hooks", hook, prepend)

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before `state_dict` collects."""
        return self._add_hook_to("_state_dict_pre_hooks", hook)

    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after `state_dict` has collected."""
        return self._add_hook_to("_state_dict_hooks", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)`` before loading."""
        return self._add_hook_to("_load_state_dict_pre_hooks", hook)

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after loading; it may edit the keys."""
        return self._add_hook_to("_load_state_dict_post_hooks", hook)

    def register_backward_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` after the module's backward; the older name."""
        return self.register_full_backward_hook(hook)

    def _register_load_state_dict_pre_hook(self, hook: Callable, with_module: bool = False) -> RemovableHandle:
        """Call ``hook(state_dict, prefix, metadata, strict, missing, unexpected, errors)`` before loading."""
        call = hook if with_module else lambda module, *args: hook(*args)
        return self._add_hook_to("_load_state_dict_pre_hooks", call)

    def _register_state_dict_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after `state_dict`; a result replaces the dict."""
        return self._add_hook_to("_state_dict_hooks", hook)
