"""`sbpjax.cuda` where there is no GPU: honest answers, and errors that say so."""

import jax
import pytest

import sbpjax as flow
from sbpjax import cuda
from sbpjax.errors import NotInJaxError

GPU = any(d.platform == "gpu" for d in jax.devices())
without = pytest.mark.skipif(GPU, reason="says what holds where there is no GPU")


@without
def test_there_is_none():
    assert flow.cuda is cuda
    assert not cuda.is_available() and not cuda.is_initialized() and cuda.device_count() == 0
    assert not cuda.is_bf16_supported() and cuda.get_arch_list() == []
    assert cuda.memory_allocated() == cuda.max_memory_allocated() == cuda.memory_reserved() == 0
    assert cuda.memory_stats() == {} and cuda.memory_summary() == "no GPU"
    cuda.empty_cache()
    cuda.reset_peak_memory_stats()
    cuda.synchronize()


@without
@pytest.mark.parametrize(
    "ask", [cuda.current_device, cuda.get_device_name, cuda.get_device_capability, cuda.get_device_properties,
            cuda.mem_get_info]
)  # fmt: skip
def test_what_needs_one_says_so(ask):
    with pytest.raises(NotInJaxError, match="JAX has no GPU in this process") as caught:
        ask()
    assert isinstance(caught.value, RuntimeError) and "fix:  check sbpjax.cuda.is_available() first" in str(
        caught.value
    )


def test_seeds_are_those_of_the_one_stream():
    cuda.manual_seed_all(3)
    first = flow.rand(3).tolist()
    cuda.manual_seed(3)
    assert flow.rand(3).tolist() == first and cuda.initial_seed() == 3
    state = cuda.get_rng_state()
    first = flow.rand(2).tolist()
    cuda.set_rng_state(state)
    assert flow.rand(2).tolist() == first
    assert len(cuda.get_rng_state_all()) == cuda.device_count()


def test_events_and_streams():
    begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    with pytest.raises(RuntimeError, match="Both events must be recorded"):
        begin.elapsed_time(end)
    with cuda.stream(cuda.Stream()):
        begin.record()
        flow.ones(100).sum()
        cuda.current_stream().record_event(end)
    assert begin.elapsed_time(end) > 0 and end.query()


def test_autocast():
    with cuda.amp.autocast(dtype=flow.bfloat16):
        assert (flow.ones(2, 2) @ flow.ones(2, 2)).dtype == flow.bfloat16
    assert cuda.amp.GradScaler is flow.amp.GradScaler
