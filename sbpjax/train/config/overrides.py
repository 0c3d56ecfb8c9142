"""Overrides of configuration values from the command line: ``trainer.max_steps=100 model.config.n_layer=4``.

a.b=1e-3            a number; also true, null, text, [1, 2], {x: 1}
trainer.hooks.validation.every=50
trainer.log_every=1       an argument that the call takes and the file does not give
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from sbpjax.errors import ConfigError, nearest

from .lazy import CALL, OWN, arguments_of, check_integers, convert_interpolation_errors, import_object
from .names import Allowed, packages_of, plain_values
from .saved import PlainLoader


def override(
    config: DictConfig, changes: Iterable[str], *, allow: Iterable[str] = (), trust: bool = False
) -> DictConfig:
    """Return a configuration with values changed.

    Args:
        config: the configuration as read; it is not changed.
        changes: ``name=value``, with dots between the names.
        allow: packages that a value may call, in addition to sbpjax, to those that the configuration calls, and to
            ``.py`` files.
        trust: let values call anything.

    Raises:
        ConfigError: a name does not exist, a value is of another kind than the existing one, or has a call that is not
            allowed.

    Example:
        >>> override(OmegaConf.create({"a": {"b": 1}}), ["a.b=2"])
        {'a': {'b': 2}}
    """
    changed = config.copy()
    open_to: set[str] = set()
    changes, known = list(changes), (*allow, *packages_of(plain_values(config)))
    for change in changes:
        name, equals, text = change.partition("=")
        if not equals or not name:
            rule = "an override is name=value, with dots between the names"
            raise ConfigError(_name_override(change), "no value" if name else "no name", rule, "trainer.max_steps=100")
        value = _value(change, text)
        with convert_interpolation_errors(_name_override(change)):
            _set(changed, name.strip(), value, change, open_to)
        *path, last = name.strip().split(".")
        Allowed(known, trust=trust, operation=_name_override(change), files=True).check({last: value}, ".".join(path))
    return changed


def _name_override(change: str) -> str:
    return f"override {change if len(change) <= 80 else change[:80] + '…'!r}"


def _value(change: str, text: str) -> Any:
    try:
        value = yaml.load(text, PlainLoader)
        OmegaConf.create({"value": value})
    except (yaml.YAMLError, OmegaConfBaseException, ValueError, RecursionError) as error:
        rule = "a value is a number, true, false, null, a text, [a, list] or {a: dict}"
        seen = (str(error).splitlines() or [type(error).__name__])[0][:200]
        fix = "put quotes around a text" if "${" not in text else "${a.b} refers to a value; write \\${ for a text"
        raise ConfigError(_name_override(change), seen, rule, fix) from None
    check_integers(value, _name_override(change))
    if isinstance(value, str):
        try:
            return float(value)  # 1e-3, which YAML takes for a text
        except ValueError:
            return value
    return value


def _set(config: DictConfig, name: str, value: Any, change: str, open_to: set[str]) -> None:
    """Set one value; ``open_to`` are the dicts that changes have made, which take any name."""
    *path, last = name.split(".")
    node: Any = config
    walked = ""
    for part in path:
        key = _key(node, part, walked, change, walked in open_to)
        is_made = isinstance(node, DictConfig) and node.get(key) is None
        if is_made:
            node[key] = {}  # an argument that the call takes as a dict, such as `options`
        node = node[key]
        walked = f"{walked}.{part}".strip(".")
        open_to |= {walked} if is_made else set()
        if not isinstance(node, (DictConfig, ListConfig)):
            seen = f"{walked} is {node!r:.100}"
            raise ConfigError(
                _name_override(change), seen, "only dicts, lists and calls have names in them", f"{walked}=…"
            )
    key = _key(node, last, walked, change, walked in open_to)
    there = key < len(node) if isinstance(node, ListConfig) else key in node
    before = OmegaConf.to_container(node, resolve=False)[key] if there else None  # type: ignore[index, call-overload]
    if there and _kind(before) != _kind(value) and None not in (before, value) and not _interpolates(before, value):
        seen = f"{value!r:.100} for {before!r:.100}"
        rule = f"{name} is {_kind(before)}, and stays one"
        raise ConfigError(_name_override(change), seen, rule, f"{name}={_example(before)}")
    node[key] = float(value) if isinstance(before, float) and isinstance(value, int) else value


def _key(node: Any, part: str, walked: str, change: str, is_open: bool) -> Any:
    """Return the key of a name within a node, which takes any name if it is open."""
    if isinstance(node, ListConfig):
        if part.isdecimal() and len(part) < 10 and int(part) < len(node):
            return int(part)
        rule = f"{walked} is a list of {len(node)}"
        raise ConfigError(_name_override(change), f"{part!r:.80} in {walked}", rule, f"{walked}.0=…")
    if (part in node or not node or is_open) and part not in OWN:  # an empty dict takes any name
        return part
    names = [str(name) for name in node if name not in OWN]
    if CALL in node:
        taken = arguments_of(import_object(node[CALL]))
        if taken is None or part in taken:
            return part
        names += taken
    near = _find_nested_name(node, part) or nearest(part, names)
    within = f" in {walked}" if walked else ""
    rule = f"there {'are' if len(set(names)) != 1 else 'is'} {', '.join(dict.fromkeys(names)) or 'nothing'}"
    behind = change[len(f"{walked}.{part}".strip(".")) :]
    fix = f"{walked}.{near}".strip(".") + behind if near else "one of these"
    raise ConfigError(_name_override(change), f"no {part!r:.80}{within}", rule, fix)


def _find_nested_name(node: Any, part: str) -> str | None:
    """Return the node of a name, one dict or call deeper."""
    for name, inner in node.items():
        if isinstance(inner, DictConfig):
            taken = arguments_of(import_object(inner[CALL])) if CALL in inner else None
            if part in inner or part in (taken or ()):
                return f"{name}.{part}"
    return None


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, (int, float)):
        return "a number"
    return {str: "a text", list: "a list", dict: "a dict or a call"}.get(type(value), "nothing")


def _interpolates(*values: Any) -> bool:
    return any(isinstance(value, str) and "${" in value for value in values)


def _example(value: Any) -> str:
    return "{…}" if isinstance(value, dict) else str(value)
