"""A configuration that is a module."""

from sbpjax.train.config import LazyCall

steps = 3
box = LazyCall(dict)(size=steps)
