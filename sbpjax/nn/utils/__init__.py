"""Helpers around parameters: clipping of gradients, parameters as one vector, weights as direction and length."""

from . import rnn as rnn
from .clip_grad import clip_grad_norm_ as clip_grad_norm_
from .clip_grad import clip_grad_value_ as clip_grad_value_
from .clip_grad import get_total_norm as get_total_norm
from .vector import parameters_to_vector as parameters_to_vector
from .vector import vector_to_parameters as vector_to_parameters
from .weight_norm import remove_weight_norm as remove_weight_norm
from .weight_norm import weight_norm as weight_norm
