"""Garbage collection around the import of the package and the traces of ops."""

import gc

import jax.numpy as jnp
import pytest

import sbpjax
from sbpjax._core.runtime.gc_pause import Pause
from sbpjax._core.tensor.dispatch.op import Op, entry_of


@pytest.fixture(autouse=True)
def _as_before():
    was = gc.isenabled()
    yield
    (gc.enable if was else gc.disable)()


def test_collection_rests_while_a_pause_lives():
    gc.enable()
    pause = Pause()
    assert not gc.isenabled()
    del pause
    assert gc.isenabled()


def test_collection_that_was_off_stays_off():
    gc.disable()
    pause = Pause()
    del pause
    assert not gc.isenabled()


def test_collection_goes_on_after_an_import_that_failed():
    def fails():
        pause = Pause()
        raise ImportError(str(pause))

    gc.enable()
    try:
        fails()
    except ImportError:
        pass
    assert gc.isenabled()


def test_the_package_has_ended_its_pause():
    assert not any(isinstance(x, Pause) for x in vars(sbpjax).values())


def test_collection_rests_while_an_op_and_its_backward_are_traced():
    seen = []

    def doubled(x):
        seen.append(gc.isenabled())
        return x * 2

    gc.enable()
    op, differentiated, x = Op(doubled), Op(doubled), jnp.ones(3)
    assert op.call(x).tolist() == [2.0] * 3
    forward = len(seen)
    entry_of(differentiated, (0,), (x.aval,))
    assert 0 < forward < len(seen)
    assert not any(seen)
    assert gc.isenabled()
