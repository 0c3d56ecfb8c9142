"""One spec per public op, and the registry of them.

A spec names the op as users call it (``add``, ``nn.functional.gelu``, ``linalg.inv``, ``Tensor.view``), draws the
arguments of a call, and says what does not hold for it. Whatever is not said is found out: PyTorch tells whether there
is an in-place form, a method, an ``out=``, a second derivative.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from tests.support.generate import Call, Gen

SPECS: dict[str, Spec] = {}


@dataclasses.dataclass(frozen=True)
class Spec:
    """What one op takes, and what is compared.

    Attributes:
        name: dotted name below `sbpjax`.
        make: draws one call from a `Gen`.
        reference: ``reference(torch)`` returns the function to compare with; by default the one of the same name.
        grad: compare gradients.
        double: compare second derivatives.
        tol: tolerances by dtype that differ from `compare.TOLERANCE`.
        layouts: run on placements.
        traced: run inside `sbpjax.compile`; not if the shape of the result depends on values.
        inplace, out, method: also test that form, where PyTorch has it.
        aliases: the result may share memory with the input: also compare what a write to the result does.
        check: ``check(plain, call)`` asserts properties instead of values, for random ops.
        invariant: ``invariant(*results)`` returns what of the results is unique (of eigenvectors, the projectors).
        reason: why something above is not the default.
        alias_of: the op of which this is another name; it is tested with that op's cases.
    """

    name: str
    make: Callable[[Gen], Call]
    reference: Callable | None = None
    grad: bool = True
    double: bool = True
    tol: dict | None = None
    layouts: bool = True
    traced: bool = True
    inplace: bool = True
    out: bool = True
    method: bool = True
    aliases: bool = False
    check: Callable | None = None
    invariant: Callable | None = None
    reason: str = ""
    alias_of: str = ""

    @property
    def last(self) -> str:
        """The name without its namespace."""
        return self.name.rsplit(".", 1)[-1]

    def function(self, library, of_peer: bool = False):
        """Return the op in a library, or None where the library has none."""
        if of_peer and self.reference is not None:
            return self.reference(library.package)
        found, invariant = library.find(self.name), self.invariant
        if invariant is None or found is None:
            return found

        def unique(*args, **kwargs):
            results = found(*args, **kwargs)
            return invariant(*results) if isinstance(results, tuple) else invariant(results)

        return unique


def register(*specs: Spec) -> None:
    """Add specs; one of the same name is replaced."""
    for spec in specs:
        SPECS[spec.name] = spec


def op(name: str, **options):
    """Return a decorator: the function below it draws the calls of one op, or of several with names in one string."""

    def decorate(make):
        for one in name.split():
            register(Spec(one, make, **options))
        return make

    return decorate


def same(names: str, of: str, **changes) -> None:
    """Give more names to an op: each is tested as the first is."""
    for name in names.split():
        register(dataclasses.replace(SPECS[of], name=name, alias_of=of, **changes))
