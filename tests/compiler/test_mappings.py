"""Programs of a process that runs out of memory mappings are dropped, before XLA ends the process."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sbpjax as flow
from sbpjax._core.compiler import mappings
from sbpjax.errors import OutOfMemoryError

pytestmark = [
    pytest.mark.skipif(not mappings.mapping_limit(), reason="this system does not say how many mappings there may be"),
    pytest.mark.usefixtures("compiled_ops"),
]


def test_programs_are_dropped_and_compiled_anew(monkeypatch):
    monkeypatch.setattr(mappings, "_OFTEN", 8)
    start = mappings.count_mappings()
    monkeypatch.setattr(mappings, "mapping_limit", lambda: int((start + 400) / mappings._DROP))
    highest = 0
    for size in range(1, 120):
        x = flow.ones(size, 8)
        (x.sin() @ x.T).softmax(-1)
        highest = max(highest, mappings.count_mappings())
    assert highest < start + 900  # two thousand without
    x = flow.ones(7, 8, requires_grad=True)
    (x.sin() @ x.T).sum().backward()
    np.testing.assert_allclose(x.grad.numpy()[0, 0], 7 * (np.sin(1) + np.cos(1)), rtol=1e-5)


def test_an_error_goes_before_the_end(monkeypatch):
    monkeypatch.setattr(mappings, "_OFTEN", 1)
    held = [jax.jit(lambda x, i=i: jnp.sin(x) + i).lower(jnp.ones(3)).compile() for i in range(3)]
    monkeypatch.setattr(mappings, "mapping_limit", lambda: 100)
    with pytest.raises(OutOfMemoryError, match=r"memory mappings of this process, of 100 .*\n.*\n.*max_map_count=400"):
        flow.ones(3, 11).sin().softmax(-1)
    assert len(held) == 3
