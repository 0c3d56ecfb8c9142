"""Written by `make stubs` from the live package; do not edit."""
# Parameter utilities: gradient clipping, flattening, weight norm, parametrisation, pruning, packed sequences.

import builtins

from sbpjax.optim.clip_grad import clip_grad_norm_ as clip_grad_norm
from sbpjax.optim.clip_grad import clip_grad_norm_ as clip_grad_norm_
from sbpjax.optim.clip_grad import clip_grad_value_ as clip_grad_value_
from sbpjax.optim.clip_grad import clip_grads_with_norm_ as clip_grads_with_norm_
from sbpjax.nn.utils.fusion import fuse_conv_bn_eval as fuse_conv_bn_eval
from sbpjax.nn.utils.fusion import fuse_conv_bn_weights as fuse_conv_bn_weights
from sbpjax.nn.utils.fusion import fuse_linear_bn_eval as fuse_linear_bn_eval
from sbpjax.nn.utils.fusion import fuse_linear_bn_weights as fuse_linear_bn_weights
from sbpjax.optim.clip_grad import get_total_norm as get_total_norm
from sbpjax.nn.utils.vector import parameters_to_vector as parameters_to_vector
from sbpjax.nn.utils import parametrizations as parametrizations
from sbpjax.nn.utils import parametrize as parametrize
from sbpjax.nn.utils import prune as prune
from sbpjax.nn.layers.quantized_linear import quantize_weights as quantize_weights
from sbpjax.nn.utils.spectral_norm import remove_spectral_norm as remove_spectral_norm
from sbpjax.nn.utils.weight_norm import remove_weight_norm as remove_weight_norm
from sbpjax.nn.utils import rnn as rnn
from sbpjax.nn.utils.init import skip_init as skip_init
from sbpjax.nn.utils.spectral_norm import spectral_norm as spectral_norm
from sbpjax.nn.utils import stateless as stateless
from sbpjax.nn.utils.vector import vector_to_parameters as vector_to_parameters
from sbpjax.nn.utils.weight_norm import weight_norm as weight_norm
