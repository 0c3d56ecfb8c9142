"""Gradient clipping by total norm or by value; one compiled program per placement."""

from sbpjax.optim.clip_grad import clip_and_norm as clip_and_norm
from sbpjax.optim.clip_grad import clip_grad_norm_ as clip_grad_norm_
from sbpjax.optim.clip_grad import clip_grad_value_ as clip_grad_value_
from sbpjax.optim.clip_grad import clip_grads_with_norm_ as clip_grads_with_norm_
from sbpjax.optim.clip_grad import clip_to as clip_to
from sbpjax.optim.clip_grad import clip_values as clip_values
from sbpjax.optim.clip_grad import get_total_norm as get_total_norm
from sbpjax.optim.clip_grad import total_norm as total_norm
