"""On-disk cache of plans: a second start of the same program skips the linear programs.

A plan is filed under the hash of everything it depends on: the program (forms of equations and how they are wired;
constants and literals only by shape), the mesh, the pins, the prices, and the sources of the rules and planner
themselves. So a stale file is never found, only forgotten. A file that cannot be read, that this user's key did not
sign (`_core/serialization/signed_cache.py`), or that does not fit its program, is ignored and replaced; writing is
atomic.

``SBPJAX_CACHE_DIR`` names another directory than the user's cache, and ``SBPJAX_CACHE_DIR=off`` turns the cache off.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import logging
import pathlib
from typing import Any

import jax

from sbpjax._core.jax_private import Literal
from sbpjax._core.programs.equation_form import EquationForms
from sbpjax._core.programs.normalise import Program
from sbpjax._core.programs.plan import Plan
from sbpjax._core.programs.rules import Strategy, names
from sbpjax._core.serialization import cache_folder, signed_cache

from .control import body_program

log = logging.getLogger("sbpjax.plan")

_FORMAT = 3
# The oldest plans are dropped beyond this many.
_MOST_FILES = 1024


def directory() -> pathlib.Path | None:
    """Return the directory of the cache, or None if it is off."""
    folder = cache_folder.root()
    return None if folder is None else folder / "plans"


def digest(program: Program, *request) -> str:
    """Return the hash of a program and of the planning request.

    Args:
        program: the flat program.
        request: mesh, pins, prices: anything whose ``repr`` is the same in every process.
    """
    # JAX's version: the jaxpr of a function changes between releases under the same source.
    found = hashlib.sha256(f"{_FORMAT} {jax.__version__} {_sources()} {names()!r} {request!r}\n".encode())
    forms = EquationForms()
    number: dict = {}

    def name(v) -> str:
        return f"={v.aval}" if isinstance(v, Literal) else str(number.setdefault(v, len(number)))

    for v in (*program.invars, *program.consts):
        found.update(f"{name(v)}:{v.aval}\n".encode())
    for eqn in program.eqns:
        known = len(forms.texts)
        form = forms.number(eqn)
        # The text of a form once: programs have thousands of equations of a few dozen forms.
        if form == known:
            found.update(forms.texts[form].encode())
        line = f"{form} {' '.join(map(name, eqn.invars))} > {' '.join(map(name, eqn.outvars))}\n"
        found.update(line.encode())
    found.update(" ".join(map(name, program.outvars)).encode())
    return found.hexdigest()


# Once per process: it reads every source file of three packages, 20 ms.
@functools.cache
def _sources() -> str:
    """Return a hash of the sources that a plan depends on."""
    root = pathlib.Path(__file__).resolve().parents[2]
    found = hashlib.sha256()
    packages = ("sbp", "_core/programs", "_core/planner")
    for path in sorted(file for package in packages for file in (root / package).rglob("*.py")):
        # Of three packages: strategies, prices and conversions decide a plan; the lowering does not.
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()


def load(key: str, program: Program, sizes: tuple[int, ...]) -> Plan | None:
    """Return the plan filed under ``key``, or None if there is none that fits the program."""
    folder = directory()
    if folder is None:
        return None
    try:
        body = signed_cache.read(folder, f"{key}.json")
        return None if body is None else _decode(json.loads(body), program, sizes)
    # Another version may have written anything there; planning anew is always right.
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        log.info("plan %s is not readable and is made anew: %s", key[:12], error)
        return None


def store(key: str, plan: Plan) -> None:
    """File a plan under ``key``; a directory that cannot be written is no error."""
    folder = directory()
    if folder is None:
        return
    # JSON, not pickle: a plan is data, and reading one must not run code.
    body = json.dumps(_encode(plan), separators=(",", ":"), default=int)  # sizes may be NumPy's
    try:
        if signed_cache.write(folder, f"{key}.json", body.encode()):
            _prune(folder)
    except OSError as error:
        log.info("plan %s is not kept: %s", key[:12], error)


def _prune(folder: pathlib.Path) -> None:
    files = list(folder.glob("*.json"))
    if len(files) > _MOST_FILES:
        # By age of writing: a plan in daily use is made anew once in a thousand, which costs seconds.
        for path in sorted(files, key=lambda p: p.stat().st_mtime)[: len(files) - _MOST_FILES]:
            path.unlink(missing_ok=True)


def _encode(plan: Plan) -> dict:
    index: dict[Strategy, int] = {}
    chosen = [[index.setdefault(strategy, len(index)) for strategy in strategies] for strategies in plan.strategies]
    return {
        "in_codes": plan.in_codes,
        "out_codes": plan.out_codes,
        "strategies": [dataclasses.asdict(strategy) for strategy in index],
        "chosen": chosen,
        "inner_bytes": plan.inner_bytes,
        "gap": plan.gap,
        "modelled_us": plan.modelled_us,
        "unlimited_us": plan.unlimited_us,
        "bodies": {str(i): _encode(body) for i, body in plan.bodies.items()},
    }


def _strategy(fields: dict[str, Any]) -> Strategy:
    values: dict[str, Any] = {k: tuple(x) if isinstance(x, list) else x for k, x in fields.items()}
    return Strategy(**values)


def _decode(data: dict, program: Program, sizes: tuple[int, ...]) -> Plan:
    table = [_strategy(fields) for fields in data["strategies"]]
    strategies = [tuple(table[i] for i in chosen) for chosen in data["chosen"]]
    in_codes = tuple(tuple(c) for c in data["in_codes"])
    out_codes = tuple(tuple(c) for c in data["out_codes"])
    # The file is signed, not trusted: a hash that collides must not become a wrong program.
    if (
        len(strategies) != len(program.eqns)
        or len(in_codes) != len(program.invars)
        or len(out_codes) != len(program.outvars)
    ):
        raise ValueError("the plan is of another program")
    for eqn, chosen in zip(program.eqns, strategies):
        if len(chosen) != len(sizes) or any(
            len(r.ins) != len(eqn.invars) or len(r.outs) != len(eqn.outvars) for r in chosen
        ):
            raise ValueError(f"the strategies of {eqn.primitive.name} do not fit")
    bodies = {
        int(i): _decode(body, body_program(program.eqns[int(i)].params["jaxpr"]), sizes)
        for i, body in data["bodies"].items()
    }
    figures = data["inner_bytes"], data["gap"], data["modelled_us"], bodies, data["unlimited_us"]
    return Plan(program, sizes, in_codes, strategies, out_codes, *figures)
