"""Programs of PyTorch's libraries, run unmodified under the alias, and what PyTorch computes of them."""
