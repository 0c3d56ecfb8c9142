"""`oneflow.unittest`: decorators for the number of nodes and devices that a test needs.

    @flow.unittest.skip_unless_1n2d()
    class TestGlobal(flow.unittest.TestCase):
        ...

``1n2d`` is one machine with two devices. OneFlow's tests run one process per device; here one process has them all, so
the devices are counted, of the default kind or of the kind in ``SBPJAX_TEST_DEVICE``.
"""

from __future__ import annotations

import functools
import os
import unittest
from collections.abc import Callable
from typing import Any

import jax as _jax

from .unittest_env import node_size


class TestCase(unittest.TestCase):
    """Python's own `unittest.TestCase`."""


def _devices() -> int:
    kind = os.environ.get("SBPJAX_TEST_DEVICE")
    return len(_jax.devices(kind)) if kind else _jax.device_count()


def _skip_unless(nodes: int, devices: int) -> Callable[[Any], Any]:
    """Return the decorator that skips a test unless a run has so many nodes and devices on each."""

    def enough() -> str | None:
        have = node_size(), _devices() // max(1, node_size())
        if have[0] == nodes and have[1] >= devices:
            return None
        return f"only runs when there are {nodes} nodes with {devices} devices each; here {have[0]} with {have[1]}"

    def decorate(test: Any) -> Any:
        if isinstance(test, type):
            setup = test.__dict__.get("setUpClass")

            def setUpClass(cls: Any) -> None:
                reason = enough()
                if reason:
                    raise unittest.SkipTest(reason)
                if setup is not None:
                    setup.__func__(cls)
                else:
                    super(test, cls).setUpClass()  # type: ignore[misc]

            test.setUpClass = classmethod(setUpClass)  # type: ignore[attr-defined]
            return test

        @functools.wraps(test)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            reason = enough()
            if reason:
                raise unittest.SkipTest(reason)
            return test(*args, **kwargs)

        return wrapper

    return decorate


def skip_unless_1n1d() -> Callable[[Any], Any]:
    """Skip unless there is one node with a device."""
    return _skip_unless(1, 1)


def skip_unless_1n2d() -> Callable[[Any], Any]:
    """Skip unless there is one node with two devices."""
    return _skip_unless(1, 2)


def skip_unless_1n4d() -> Callable[[Any], Any]:
    """Skip unless there is one node with four devices."""
    return _skip_unless(1, 4)


def skip_unless_2n1d() -> Callable[[Any], Any]:
    """Skip unless there are two nodes with a device each."""
    return _skip_unless(2, 1)


def skip_unless_2n2d() -> Callable[[Any], Any]:
    """Skip unless there are two nodes with two devices each."""
    return _skip_unless(2, 2)


def skip_unless_2n4d() -> Callable[[Any], Any]:
    """Skip unless there are two nodes with four devices each."""
    return _skip_unless(2, 4)


def num_nodes_required(num_nodes: int) -> Callable[[Any], Any]:
    """Skip unless there are so many nodes."""
    return _skip_unless(num_nodes, 1)
