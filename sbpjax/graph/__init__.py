"""Compiled programs: a whole training step traced, planned and compiled as one."""

from .compile import Compiled as Compiled
from .compile import compile as compile
from .explain import explain as explain
from .explain import visualize as visualize
