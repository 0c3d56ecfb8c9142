"""Parameter utilities: gradient clipping, flattening, weight norm, parametrisation, packed sequences."""

from sbpjax._core.functions.table.table import reexport_hooks as _reexport_hooks
from sbpjax.nn.layers.quantized_linear import quantize_weights as quantize_weights
from sbpjax.optim.clip_grad import clip_grad_norm_ as clip_grad_norm  # noqa: F401  the old name
from sbpjax.optim.clip_grad import clip_grad_norm_ as clip_grad_norm_
from sbpjax.optim.clip_grad import clip_grad_value_ as clip_grad_value_
from sbpjax.optim.clip_grad import clip_grads_with_norm_ as clip_grads_with_norm_
from sbpjax.optim.clip_grad import get_total_norm as get_total_norm

from . import rnn as rnn
from .fusion import fuse_conv_bn_eval as fuse_conv_bn_eval
from .fusion import fuse_conv_bn_weights as fuse_conv_bn_weights
from .fusion import fuse_linear_bn_eval as fuse_linear_bn_eval
from .fusion import fuse_linear_bn_weights as fuse_linear_bn_weights
from .parameters import parameters_to_vector as parameters_to_vector
from .parameters import skip_init as skip_init
from .parameters import vector_to_parameters as vector_to_parameters
from .spectral_norm import remove_spectral_norm as remove_spectral_norm
from .spectral_norm import spectral_norm as spectral_norm
from .weight_norm import remove_weight_norm as remove_weight_norm
from .weight_norm import weight_norm as weight_norm

# rarely used
__getattr__, __dir__ = _reexport_hooks(
    "nn.utils", globals(), modules="clip_grad parametrizations parametrize stateless"
)
