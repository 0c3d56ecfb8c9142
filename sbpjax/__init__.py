"""sbpjax: OneFlow's global tensors on JAX."""

from . import _config

_config.apply()
