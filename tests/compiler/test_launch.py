"""`compiler.launch`: programs that run within one call into C."""

import sys
from collections import deque
from itertools import chain, starmap

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax._core.compiler.launch import Launcher, accepts_args, copy_array


def doubled(x, factor):
    return x * factor, x.sum()


def launcher_of(function=doubled):
    jitted = jax.jit(function, donate_argnums=0)
    return Launcher(lambda args: jitted.lower(*args).compile(), "doubled")


def slowly(launcher, *args):
    outs: list = []
    steps, after = launcher.prepare_call(args, outs)
    deque(chain(*steps), maxlen=0)
    after()
    return outs


def test_a_call_that_is_not_ready_runs_nothing():
    launcher, x = launcher_of(), jnp.arange(3.0)
    assert launcher.call(x, 2.0) == () and not launcher.is_ready((x, 2.0)) and not x.is_deleted()


def test_a_program_is_ready_once_it_has_run():
    launcher = launcher_of()
    first, total = slowly(launcher, jnp.arange(3.0), 2.0)
    assert launcher.is_ready((first, 2.0)) and not first.is_deleted()
    again, _ = launcher.call(first, 3.0)
    assert first.is_deleted() and again.tolist() == [0.0, 6.0, 12.0] and float(total) == 3.0


def test_other_arguments_miss_until_they_have_run():
    launcher = launcher_of()
    slowly(launcher, jnp.arange(3.0), 2.0)
    assert launcher.is_ready((jnp.arange(3.0), 2.0))
    for x, y in [(jnp.arange(4.0), jnp.ones(4)), (jnp.arange(3), jnp.ones(3, int))]:
        assert launcher.call(x, 2) == () and not x.is_deleted()
        slowly(launcher, x, 2)
        assert launcher.call(y, 2) == () and not y.is_deleted()  # made ready by this
        assert len(launcher.call(y, 2)) == 2 and y.is_deleted()


def test_no_python_runs_between_a_program_and_what_follows():
    launcher = launcher_of()
    x, _ = slowly(launcher, jnp.arange(3.0), 2.0)
    launcher.is_ready((x, 2.0))
    for steps in ([starmap(launcher.call, ((x, 2.0),))], launcher.prepare_call((jnp.arange(3.0), 2.0), [])[0]):
        events = []
        sys.setprofile(lambda frame, event, arg: events.append((event, frame.f_code.co_name)))  # noqa: B023
        deque(chain.from_iterable(steps), maxlen=0)
        sys.setprofile(None)
        assert [name for event, name in events if event == "call"] == []


def test_effects_are_kept_by_a_program_that_jax_runs_with_python(capfd):
    def record_call(x):
        jax.debug.print("x is {}", x[1])
        return (x + 1,)

    launcher = launcher_of(record_call)
    for value in range(3):
        (out,) = slowly(launcher, jnp.full(2, float(value)))
        assert out.tolist() == [value + 1.0] * 2 and not launcher.is_ready((out,))
    jax.effects_barrier()
    assert capfd.readouterr().out.split("\n")[:3] == ["x is 0.0", "x is 1.0", "x is 2.0"]


def test_arguments_of_another_shape_do_not_fit():
    compiled = jax.jit(doubled).lower(jnp.zeros(3), 1.0).compile()
    assert accepts_args(compiled, (jnp.zeros(3), 2.0))
    assert not accepts_args(compiled, (jnp.zeros(4), 2.0)) and not accepts_args(compiled, (jnp.zeros(3, int), 2.0))
    with pytest.raises(TypeError, match="differ"):
        Launcher(lambda args: compiled, "doubled").prepare_call((jnp.zeros(4), 2.0), [])


def test_a_copy_is_not_looked_at():
    x = jnp.full(2, np.nan)
    with jax.debug_nans(True):
        y = copy_array(x)
    assert y is not x and np.isnan(np.asarray(y)).all()
