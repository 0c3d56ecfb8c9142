"""JAX's jaxpr classes, imported from their source instead of `jax.extend.core`.

Importing any part of ``jax.extend`` loads Pallas, a fifth of the time that importing sbpjax takes, and nothing here
uses it. The public names are the same objects; `tests/runtime/test_jaxprs.py` checks it.
"""

import typing as _typing

from jax._src import core as _core
from jax._src.core import DropVar as DropVar
from jax._src.core import JaxprEqn as JaxprEqn
from jax._src.core import Literal as Literal
from jax._src.core import Primitive as Primitive
from jax._src.core import Var as Var
from jax._src.core import jaxpr_as_fun as jaxpr_as_fun
from jax._src.core import new_jaxpr_eqn as new_jaxpr_eqn
from jax._src.core import no_effects as no_effects

# From JAX 0.12 on a jaxpr holds its constants itself, and `jax.extend.core` gives that class under both names.
if _typing.TYPE_CHECKING:
    from jax._src.core import ClosedJaxpr as ClosedJaxpr
else:
    ClosedJaxpr = getattr(_core, "ClosedJaxpr", None) or _core.Jaxpr
