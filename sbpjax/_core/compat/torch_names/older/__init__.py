"""Modules of PyTorch that older programs and libraries import: parallel modules, futures, timers, writers."""
