"""Modules that answer where PyTorch has a name and sbpjax, by itself, has no use for one."""
