"""Private parts of data loading that OneFlow and PyTorch expose under this name."""
