"""Loss functions with PyTorch's reductions and weights."""
