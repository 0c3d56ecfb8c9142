"""JAX's classes of programs are those that JAX shows in public."""

import jax.extend.core
import pytest

from sbpjax._core.runtime import jaxprs

NAMES = [name for name in vars(jaxprs) if not name.startswith("_")]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_the_public_one(name):
    assert getattr(jaxprs, name) is getattr(jax.extend.core, name)
