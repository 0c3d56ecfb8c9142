"""Conversion of nested structures to global or local, and `global_mode` for a block of code."""

from sbpjax.distributed.global_view import current_global_mode as current_global_mode
from sbpjax.distributed.global_view import global_mode as global_mode
from sbpjax.distributed.global_view import to_global as to_global
from sbpjax.distributed.global_view import to_local as to_local
