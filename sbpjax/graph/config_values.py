"""Checks of option values of a graph; each error lists the allowed values."""

from __future__ import annotations

from typing import Any

from sbpjax.errors import GraphConfigError, nearest


def option_error(operation: str, seen: str, rule: str, fix: str) -> GraphConfigError:
    """Return the error of an option."""
    return GraphConfigError(f"config.{operation}", seen, rule, fix)


def check_bool(name: str, mode: Any) -> bool:
    """Return a bool; refuse anything else."""
    if not isinstance(mode, bool):
        raise option_error(
            f"{name}({mode!r})", f"a {type(mode).__name__}", "the option is on or off: a bool", f"{name}(True)"
        )
    return mode


def check_integer(name: str, value: Any, least: int) -> int:
    """Return a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise option_error(name, repr(value), f"a whole number of at least {least}", f"e.g. {max(least, 2)}")
    return value


def check_nonnegative(name: str, value: Any) -> float:
    """Return a number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise option_error(name, repr(value), "a number of at least 0", f"{name}(1.0)")
    return value


def check_choice(name: str, value: Any, allowed: tuple) -> Any:
    """Return one of some values."""
    if isinstance(value, bool) or value not in allowed:
        near = nearest(value, allowed) if isinstance(value, str) and all(isinstance(v, str) for v in allowed) else None
        raise option_error(name, repr(value), f"one of {list(allowed)}", f"e.g. {near or allowed[-1]!r}")
    return value
