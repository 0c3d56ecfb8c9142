"""The `Tensor` handle with its dtype, device and size."""
