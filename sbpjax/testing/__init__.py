"""Comparison of results in tests: `assert_close`."""

from .close import assert_close as assert_close
