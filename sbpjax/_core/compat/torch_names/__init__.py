"""PyTorch modules without counterpart in sbpjax, served by the alias."""
