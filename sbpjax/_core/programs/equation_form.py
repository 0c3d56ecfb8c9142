"""Structural hashing of equations: equal forms share a number, so strategies and costs are found once.

A GPT of 48 layers has 20,000 equations and about 300 forms. The number of an equation depends on its primitive, its
parameters and the shapes and dtypes of its operands; literals count by shape, not by value. The text of a form is the
same in every process; the plan cache on disk hashes it.
"""

from __future__ import annotations

import functools
import re

from sbpjax._core.jax_private import Literal

# Functions in parameters print their address, which differs from process to process.
_ADDRESS = re.compile(r" at 0x[0-9a-f]+|0x[0-9a-f]{6,}")


class EquationForms:
    """Numbers for equations, by form.

    Attributes:
        examples: the first equation of each number.
        texts: the text of each number.
    """

    def __init__(self) -> None:
        self.examples: list = []
        self.texts: list[str] = []
        self._by_key: dict = {}
        self._by_text: dict[str, int] = {}

    def number(self, eqn) -> int:
        """Return the number of an equation's form."""
        variables = tuple(_form(v) for v in (*eqn.invars, *eqn.outvars))
        key = (eqn.primitive.name, len(eqn.invars), variables, _params_key(eqn.params))
        found = self._by_key.get(key)
        if found is None:
            # Two keys may have one text: equal jaxprs that are different objects.
            text = f"{eqn.primitive.name} {len(eqn.invars)} {variables} {_params_text(eqn.params)}"
            found = self._by_text.get(text)
            if found is None:
                found = self._by_text[text] = len(self.examples)
                self.examples.append(eqn)
                self.texts.append(text)
            self._by_key[key] = found
        return found


# A few hundred shapes cover all variables, and their text takes longer than the rest of a form.
@functools.lru_cache(maxsize=65536)
def _aval_form(shape, dtype) -> str:
    return f"{dtype}{list(shape)}"


def _form(variable) -> str:
    aval = variable.aval
    shape = getattr(aval, "shape", None)
    text = str(aval) if shape is None else _aval_form(shape, getattr(aval, "dtype", None))
    return f"={text}" if isinstance(variable, Literal) else text


def _params_key(params: dict):
    key = tuple(params.items())
    try:
        hash(key)
    except TypeError:  # a list, a jaxpr with unhashable parts: the parameters' text decides
        return _params_text(params)
    return key


def _params_text(params: dict) -> str:
    return _ADDRESS.sub("", ", ".join(f"{k}={params[k]}" for k in sorted(params)))
