"""PyTorch's place for these names: the base class."""

from sbpjax.nn.hooks import register_module_backward_hook as register_module_backward_hook
from sbpjax.nn.hooks import register_module_buffer_registration_hook as register_module_buffer_registration_hook
from sbpjax.nn.hooks import register_module_forward_hook as register_module_forward_hook
from sbpjax.nn.hooks import register_module_forward_pre_hook as register_module_forward_pre_hook
from sbpjax.nn.hooks import register_module_full_backward_hook as register_module_full_backward_hook
from sbpjax.nn.hooks import register_module_full_backward_pre_hook as register_module_full_backward_pre_hook
from sbpjax.nn.hooks import register_module_module_registration_hook as register_module_module_registration_hook
from sbpjax.nn.hooks import register_module_parameter_registration_hook as register_module_parameter_registration_hook
from sbpjax.nn.module import Module as Module
from sbpjax.nn.state import EXTRA_STATE_KEY as EXTRA_STATE_KEY
from sbpjax.nn.state import IncompatibleKeys as IncompatibleKeys

_IncompatibleKeys = IncompatibleKeys

_EXTRA_STATE_KEY_SUFFIX = EXTRA_STATE_KEY


def _addindent(s_: str, numSpaces: int) -> str:
    """Return a text whose lines behind the first are set in by so many spaces."""
    return s_.replace("\n", "\n" + " " * numSpaces)


def _forward_unimplemented(self, *input) -> None:
    """Raise NotImplementedError: the module has no forward."""
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')
