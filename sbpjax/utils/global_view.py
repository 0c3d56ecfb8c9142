"""Local and global views: of nested structures, and of a whole block of code."""

from sbpjax.distributed.global_view import current_global_mode as current_global_mode
from sbpjax.distributed.global_view import global_mode as global_mode
from sbpjax.distributed.global_view import to_global as to_global
from sbpjax.distributed.global_view import to_local as to_local
