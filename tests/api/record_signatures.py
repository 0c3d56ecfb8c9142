"""Record what callables of the real OneFlow accept, in `signatures.json`; the one script here that needs OneFlow.

    python tests/api/record_signatures.py    # in an environment with oneflow 0.9, on a CPU

It runs the installed package as a black box. Python functions tell their signature. A builtin with several signatures
lists them in the error of a call that fits none. One with a single signature is asked for its parameters one after
the other: called with an argument that nothing takes, it says "argument 'dim' must be int64", "missing required
argument other" or "takes 3 positional arguments", so no call ever runs.

A parameter is written ``name:type``, ``name?:type`` if it may be left out; ``*`` comes before those that are given by
name alone, ``*name`` and ``**name`` take any number.
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import oneflow

HERE = Path(__file__).parent
SKIPPED = ("oneflow.Tensor.register_hook",)  # a function of a function, whose signature is the inner one's
PRIORITIES = ("1", "2")
KINDS = ("function", "class", "method", "other")

# Builtins whose errors do not tell, some of which end the process: what their docstrings say.
MESSAGES = {
    "oneflow.Size.numel": "self",
    "oneflow.Tensor.cast": "self, dtype",
    "oneflow.Tensor.cuda": "self, device?",
    "oneflow.Tensor.global_to_global": "self, placement?, sbp?, grad_sbp?, check_meta?, copy?",
    "oneflow.Tensor.matmul": "self, other",
    "oneflow.Tensor.permute": "self, *dims",
    "oneflow.Tensor.requires_grad_": "self, requires_grad?",
    "oneflow.Tensor.reshape": "self, *shape",
    "oneflow.Tensor.reshape_as": "self, other",
    "oneflow.Tensor.size": "self, idx?",
    "oneflow.Tensor.std": "self, dim?, unbiased?, keepdim?",
    "oneflow.Tensor.softplus": "self, beta?, threshold?",
    "oneflow.Tensor.to_local": "self, copy?",
    "oneflow.Tensor.transpose": "self, dim0, dim1",
    "oneflow.Tensor.var": "self, dim?, unbiased?, keepdim?",
    "oneflow.Tensor.view": "self, *shape",
    "oneflow.Tensor.view_as": "self, other",
    "oneflow.column_stack": "tensors",
    "oneflow.dstack": "tensors",
    "oneflow.from_numpy": "obj",
    "oneflow.hstack": "tensors",
    "oneflow.row_stack": "tensors",
    "oneflow.vstack": "tensors",
}
NOTHING = object()  # an argument that no parameter takes
WORDS: dict[str, None] = {}  # the parameters of all the other signatures, for builtins that only refuse keywords


def names() -> list[str]:
    """Return the dotted names of the priorities in question."""
    found = []
    for space, groups in json.loads((HERE / "oneflow_api.json").read_text()).items():
        for key, several in groups.items():
            priority, kind = key.split(" ", 1)
            if priority in PRIORITIES and kind in KINDS:
                found += [f"{space}.{name}" for name in several.split()]
    return sorted(set(found))


def resolve(path: str):
    """Return the object of a dotted name, or None."""
    found = oneflow
    for part in path.split(".")[1:]:
        try:
            found = getattr(found, part)
        except AttributeError:
            return None
    return found


# ------------------------------------------------------------------------------------------------- Python functions


def of_python(signature: inspect.Signature) -> str:
    """Return a signature in the form of the table."""
    parts, starred = [], False
    for p in signature.parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            parts.append(f"*{p.name}")
            starred = True
        elif p.kind is p.VAR_KEYWORD:
            parts.append(f"**{p.name}")
        else:
            if p.kind is p.KEYWORD_ONLY and not starred:
                parts.append("*")
                starred = True
            parts.append(p.name + ("" if p.default is p.empty else "?"))
    return ", ".join(parts)


# --------------------------------------------------------------------------------------------------------- builtins


def _values() -> dict:
    tensor = oneflow.ones(1)
    return {
        "tensor": tensor,
        "tensor tuple": [tensor, tensor],
        "int32": 1,
        "int64": 1,
        "uint64": 1,
        "int32 list": [1],
        "int64 list": [1],
        "float": 1.0,
        "float list": [1.0],
        "double": 1.0,
        "double list": [1.0],
        "scalar": 1,
        "bool": True,
        "bool list": [True],
        "string": "",
        "string list": [""],
        "shape": [1],
        "shape list": [[1]],
        "data type": oneflow.float32,
        "dtype": oneflow.float32,
        "data type list": [oneflow.float32],
        "device": oneflow.device("cpu"),
        "placement": oneflow.placement("cpu", [0]),
        "sbp": oneflow.sbp.broadcast,
        "sbp list": [oneflow.sbp.broadcast],
        "generator": oneflow.default_generator,
        "layout": None,
        "memory format": None,
        "index": 0,
        "tensor index": 0,
    }


VALUES = _values()
_SAME = {"Tensor": "tensor", "TensorTuple": "tensor tuple"}


def _message(f, args, options) -> str:
    try:
        f(*args, **options)
    except Exception as error:  # whatever it is: its text is what is read
        return re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip()
    return "ran"


def _overloads(text: str) -> list[str] | None:
    if "The valid signatures are" not in text:
        return None
    return [_of_overload(line) for line in re.findall(r"\*\d+: \w+ \((.*)\)", text)]


def _of_overload(line: str) -> str:
    parts = []
    for part in filter(None, line.split(", ")):
        if part == "*":
            parts.append(part)
            continue
        kind, name = part.split(" ", 1)
        name, optional, _ = name.partition("=")
        parts.append(f"{name}{'?' if optional else ''}:{kind}")
    return ", ".join(parts)


def of_builtin(f, given: tuple = ()) -> list[str]:
    """Return the signatures of a builtin; ``given`` are the arguments that a method has already."""
    found: list[str] = ["self"] * len(given)
    args = list(given)
    required = {}
    for _ in range(40):
        requested = _message(f, (*args, NOTHING), {})
        several = _overloads(requested) or _overloads(_message(f, args, {"no_such_argument": 1}))
        if several is not None:
            return (
                [re.sub(r"^\w+:Tensor", "self", one) for one in several if ":Tensor" in one.split(",")[0]]
                if given
                else several
            )
        named = re.search(r"argument '(\w+)' must be ([\w ]+), not", requested)
        if named is None:
            break
        name, kind = named.groups()
        missing = f"missing required argument {name}" in _message(f, args, {"no_such_argument": 1})
        if kind not in VALUES:
            return [f"?? {kind}"]
        found.append(f"{name}{'' if missing else '?'}:{kind.replace(' ', '_')}")
        args.append(VALUES[kind])
        if missing:
            required[name] = args[-1]
    else:
        return ["?? no end"]
    if supported := of_pybind(requested):
        return supported
    if words := _parsed_by_python(f, given):
        return [words]
    if "takes no arguments" not in requested and not re.search(r"takes .*positional argument", requested):
        return [f"?? {requested[:200]}"]
    return [", ".join([*found, *_by_name(f, list(given), required, {p.partition(":")[0].strip("?") for p in found})])]


def _by_name(f, given: list, required: dict, known: set[str]) -> list[str]:
    """Return the parameters that are given by name alone, of a builtin with one signature."""
    found = []
    while needed := re.search(
        r"missing required argument (\w+)", _message(f, given, {**required, "no_such_argument": 1})
    ):
        name = needed.group(1)
        kind = re.search(r"must be ([\w ]+), not", _message(f, given, {**required, name: NOTHING})).group(1)
        required[name] = VALUES[kind]
        known.add(name)
        found.append(f"{name}:{kind.replace(' ', '_')}")
    for word in WORDS:
        if word not in known:
            text = _message(f, given, {**required, word: NOTHING})
            if named := re.search(rf"argument '{word}' must be ([\w ]+), not", text):
                found.append(f"{word}?:{named.group(1).replace(' ', '_')}")
    return ["*", *found] if found else []


def _parsed_by_python(f, given: tuple) -> str:
    """Return the parameters of a method of `Tensor` that says which keywords it does not know, else nothing."""
    unknown = r"is an invalid keyword argument|got an unexpected keyword|multiple values"
    if not re.search(unknown, _message(f, given, {"no_such_argument": 1})):
        return ""
    if re.search("takes no (keyword )?arguments", _message(f, (*given, NOTHING), {})):
        return ", ".join(["self"] * len(given)) or " "
    known = [word for word in WORDS if not re.search(unknown, _message(f, given, {word: NOTHING}))]
    order = ["*"] if len(known) > 1 else []  # which of several comes first is not said
    return ", ".join(["self"] * len(given) + order + [f"{word}?" for word in known])


def of_pybind(text: str) -> list[str]:
    """Return the signatures that pybind11 writes into docstrings and errors."""
    found = []
    for line in text.splitlines():
        if match := re.match(r"\s*(?:\d+\. )?\w*\((.*)\) -> ", line):
            parts = [p for p in re.split(r", (?=\w+:|\*)", match.group(1)) if p]
            parts = [p if p[0] == "*" else p.split(":")[0] + ("?" if " = " in p else "") for p in parts]
            if parts != ["*args", "**kwargs"]:
                found.append(", ".join(parts))
    return found


# --------------------------------------------------------------------------------------------------------------- all


def signatures(path: str) -> list[str] | None:
    """Return what a callable accepts; None if it is none, or has no name there."""
    f = resolve(path)
    if not callable(f) or path.endswith("__") or path in SKIPPED:  # operators are called by their sign
        return None
    if path in MESSAGES:
        return [MESSAGES[path]]
    method = path.startswith("oneflow.Tensor.")
    try:
        text = of_python(inspect.signature(f))
    except (ValueError, TypeError):
        text = ""
    if isinstance(f, type) or text and "**" not in text and "*args" not in text:
        return [text]
    found = of_builtin(f, (oneflow.ones(1),) if method else ())
    if not found[0].startswith("??"):
        return found
    return [text] if text else of_pybind(f.__doc__ or "") or found


if __name__ == "__main__":
    for _ in range(2):
        table = {path: found for path in names() if (found := signatures(path)) is not None}
        parameters = re.findall(r"(?:^|, )([a-z]\w*)", ", ".join(", ".join(s) for s in table.values()))
        WORDS.update(dict.fromkeys(sorted(set(parameters) - {"self"})))
    lines = [f"{json.dumps(path)}: {json.dumps(found)}" for path, found in table.items()]
    (HERE / "signatures.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(len(table), "callables;", "not understood:", *[f"\n  {p}: {s}" for p, s in table.items() if "??" in s[0]])
