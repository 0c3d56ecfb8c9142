"""Hooks on tensors saved for backward: `saved_tensors_hooks`, `save_on_cpu`."""

from sbpjax._core.tensor.tape.saved_tensors import Node as Node
from sbpjax._core.tensor.tape.saved_tensors import Packed as Packed
from sbpjax._core.tensor.tape.saved_tensors import active_hooks as active_hooks
from sbpjax._core.tensor.tape.saved_tensors import disable_saved_tensors_hooks as disable_saved_tensors_hooks
from sbpjax._core.tensor.tape.saved_tensors import register_multi_grad_hook as register_multi_grad_hook
from sbpjax._core.tensor.tape.saved_tensors import save_on_cpu as save_on_cpu
from sbpjax._core.tensor.tape.saved_tensors import saved_tensors_hooks as saved_tensors_hooks
