"""Run the cases of ops: `check` for one op in every form, `one` for a single case.

check("cumsum", seed=3)                             # raises on the first difference, with a script that shows it
python -m tests.op_specs cumsum add --seed 3 --cases 20
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Iterable

from tests.support.layouts import MESHES

from .cases import FORMS, draw
from .compare import Different
from .excuses import excused
from .report import Failure, shrink
from .spec import SPECS, Spec


class CheckError(AssertionError):
    """An op differs; the text ends in a script that shows it."""


@dataclasses.dataclass
class Tally:
    """How many cases ran, and those that differ."""

    ran: int = 0
    excused: int = 0
    failures: list[Failure] = dataclasses.field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Count another tally in."""
        self.ran += other.ran
        self.excused += other.excused
        self.failures += other.failures


def check(name: str, seed: int = 0, cases: int = 5, forms: Iterable[str] = tuple(FORMS)) -> Tally:
    """Test one op in every form and raise on the first difference.

    Args:
        name: dotted name of the op, such as ``"nn.functional.gelu"``.
        seed: chooses the cases; the same seed gives the same ones.
        cases: cases per form.
        forms: names of `cases.FORMS`.

    Returns:
        How many cases there were.

    Raises:
        CheckError: an op differs from PyTorch, or from itself on a placement or compiled.
        KeyError: the op has no spec.

    Example:
        >>> @op("add")
        ... def _(g):
        ...     x = g.tensor(kinds="f")
        ...     return call(x, g.like(x))
        >>> check("add", seed=1, cases=2, forms=("forward",)).ran
        2
    """
    tally = tally_of(SPECS[name], range(seed, seed + 1), cases, forms)
    if tally.failures:
        raise CheckError(str(tally.failures[0]))
    return tally


def tally_of(spec: Spec, seeds: Iterable[int], cases: int, forms: Iterable[str]) -> Tally:
    """Run cases of one op and return the tally; failures are shrunk."""
    tally = Tally()
    for form in forms:
        for seed in seeds:
            for number in range(cases):
                tally.add(one(spec, form, seed, number))
    return tally


def one(spec: Spec, form: str, seed: int, number: int) -> Tally:
    """Run one case of one form."""
    where = [zlib.crc32((spec.alias_of or spec.name).encode()), seed, number]
    drawn = draw(spec, form, where)
    if drawn is None:
        return Tally()
    gen, call = drawn
    options = {"mesh": list(MESHES)[(seed + number) % len(MESHES)], "seed": seed} if "layouts" in form else {}
    ran = [False]

    def fails(candidate) -> Different | None:
        try:
            ran[0] = FORMS[form](spec, candidate, **options)
        except Different as error:
            return error
        return None

    error = fails(call)
    if error is None:
        return Tally(ran=int(ran[0]))
    if excused(spec.name, form, call, error):
        return Tally(ran=1, excused=1)
    small = shrink(spec, form, where, gen.choices, fails) or (call, error)
    return Tally(ran=1, failures=[Failure(spec, form, where, small[0], small[1], options)])
