"""Test environment: nodes, devices and processes, under OneFlow's names and variables."""

from __future__ import annotations

import os

from sbpjax.distributed import env as _env
from sbpjax.errors import OpValueError as _OpValueError


def device_num() -> int:
    """Return the number of devices that a test on one node may use: ``ONEFLOW_TEST_DEVICE_NUM``, 1 by default."""
    return int(os.environ.get("ONEFLOW_TEST_DEVICE_NUM", "1"))


def node_size() -> int:
    """Return the number of nodes."""
    return _env.get_node_size()


def has_world_size() -> bool:
    """Return whether the number of processes is known, as it always is."""
    return True


def world_size() -> int:
    """Return the number of processes."""
    return _env.get_world_size()


def has_node_list() -> bool:
    """Return whether ``ONEFLOW_TEST_NODE_LIST`` names nodes."""
    return bool(os.environ.get("ONEFLOW_TEST_NODE_LIST"))


def node_list() -> list[str]:
    """Return the nodes that ``ONEFLOW_TEST_NODE_LIST`` names, by commas."""
    names = os.environ.get("ONEFLOW_TEST_NODE_LIST", "")
    if not names:
        rule = "ONEFLOW_TEST_NODE_LIST names the nodes"
        raise _OpValueError("unittest.env.node_list()", "no list", rule, "export ONEFLOW_TEST_NODE_LIST=a,b")
    return names.split(",")


def eager_execution_enabled() -> bool:
    """Return whether ``ONEFLOW_TEST_ENABLE_EAGER`` is set; ops run eagerly in any case."""
    return os.environ.get("ONEFLOW_TEST_ENABLE_EAGER") == "1"


def typing_check_enabled() -> bool:
    """Return whether ``ONEFLOW_TEST_ENABLE_TYPING_CHECK`` is set; nothing depends on it."""
    return os.environ.get("ONEFLOW_TEST_ENABLE_TYPING_CHECK") == "1"
