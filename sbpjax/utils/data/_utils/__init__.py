"""Parts of data loading that OneFlow and PyTorch show under this name."""
