"""Configurations: Python files of lazy calls that can be overridden, saved and instantiated."""

from .lazy import LazyCall as LazyCall
from .lazy import instantiate as instantiate
from .load import load_config as load_config
from .overrides import override as override
from .saved import changes as changes
from .saved import save_config as save_config
