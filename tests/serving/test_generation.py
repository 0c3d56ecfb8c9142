"""Text for many at once: the tokens of `generate`, whatever comes and goes in between."""

import contextlib
import random
import threading
import time
import types

import pytest

import sbpjax as flow
from sbpjax import models, nn
from sbpjax.errors import BusyError, ServingError
from sbpjax.models.t5 import T5, T5Config
from sbpjax.serving import GenerationEngine, generation
from tests.models.cases import LLAMA, TRAINED

LONGEST = {"gpt2": 16, "qwen3": 40, "mixtral": 40}


def made(name):
    """Return a model whose likeliest tokens are far apart."""
    flow.manual_seed(1)
    model = TRAINED[name]().eval()
    with flow.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(8.0)
    return model


def requests(count, longest, seed=0):
    rnd = random.Random(seed)
    found = [([rnd.randrange(61) for _ in range(rnd.randint(1, longest - 6))], rnd.randint(1, 6)) for _ in range(count)]
    # Some begin alike.
    return [(found[i // 2][0][: longest - 8] + [i % 61], n) if i % 4 == 3 else (p, n) for i, (p, n) in enumerate(found)]


@pytest.fixture(scope="module")
def gpt():
    return made("gpt2")


@pytest.mark.parametrize(
    "name", ["gpt2", *(pytest.param(n, marks=pytest.mark.exhaustive) for n in ("qwen3", "mixtral"))]
)
def test_64_requests_in_any_order_get_the_tokens_of_generate(name, gpt):
    model = gpt if name == "gpt2" else made(name)
    longest = LONGEST[name]
    requested = requests(64, longest)
    alone = models.Generator(model)
    wanted = [alone([prompt], new_tokens)[0] for prompt, new_tokens in requested]
    engine = GenerationEngine(model, rows=5, blocks=24, block=4, chunk=6, longest=longest)
    found = [None] * len(requested)

    def ask(places):
        for place in places:
            found[place] = list(engine.submit(*requested[place]))

    with engine:
        for seed in (1, 2):
            order = random.Random(seed).sample(range(64), 64)
            threads = [threading.Thread(target=ask, args=(order[i::16],)) for i in range(16)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert found == wanted
        counts = engine.statistics()
    assert (counts["running"], counts["waiting"], counts["blocks_used"]) == (0, 0, 0)
    assert counts["cache_bytes"] == sum(cache.bytes for cache in engine._caches) > 0


@pytest.mark.parametrize("name", ["gpt2", pytest.param("qwen3", marks=pytest.mark.exhaustive)])
def test_a_model_that_is_divided_over_devices_gives_the_same_tokens(name):
    requested = requests(8, LONGEST[name], seed=3)
    alone = models.Generator(made(name))
    wanted = [alone([prompt], new_tokens)[0] for prompt, new_tokens in requested]
    model = models.parallelize(made(name), models.Parallel(tensor=2, device="cpu"))
    engine = GenerationEngine(model, rows=2, blocks=6, block=16, chunk=2, longest=LONGEST[name])
    # The heads of the keys in the cache are divided as those of the layer are.
    assert {pool.sbp for c in engine._caches for pool in (c.keys, c.values)} == {(flow.sbp.split(1),)}
    with engine:
        streams = [engine.submit(*request) for request in requested]
        assert [list(stream) for stream in streams] == wanted


def test_weights_of_8_bits_give_the_tokens_of_generate():
    model = made("gpt2")
    nn.utils.quantize_weights(model)
    requested = requests(6, LONGEST["gpt2"], seed=4)
    alone = models.Generator(model)
    wanted = [alone([prompt], new_tokens)[0] for prompt, new_tokens in requested]
    with GenerationEngine(model, rows=2, blocks=4, block=16, chunk=2, longest=LONGEST["gpt2"]) as engine:
        streams = [engine.submit(*request) for request in requested]
        assert [list(stream) for stream in streams] == wanted


def test_a_request_that_is_cancelled_gives_its_place_back(gpt):
    engine = GenerationEngine(gpt, rows=1, blocks=3, block=16, chunk=2, longest=16)
    with engine:
        first = engine.submit([1, 2], 14)
        waits = engine.submit([3], 2)
        gone = engine.submit([4], 2)
        gone.cancel()
        next(iter(first))
        first.cancel()
        assert len(list(waits)) == 2 and list(gone) == [] and len(list(first)) < 14
        assert engine.statistics()["blocks_used"] == 0


def test_a_full_queue_refuses(gpt):
    engine = GenerationEngine(gpt, rows=1, blocks=3, block=16, chunk=2, longest=16, max_queue=2)
    engine._turn = lambda: time.sleep(0.01)
    with engine:
        with pytest.raises(BusyError, match=r"(?s)2 requests that wait.*at most 2.*fix: "):
            for _ in range(5):
                engine.submit([1], 4)
                time.sleep(0.05)


def test_stop_and_temperature(gpt):
    with GenerationEngine(gpt, rows=2, blocks=4, block=16, chunk=2, longest=16) as engine:
        plain = list(engine.submit([5, 6], 6))
        stream = engine.submit([5, 6], 6, stop=[plain[1]])
        assert list(stream) == plain[: plain.index(plain[1]) + 1] and stream.finish_reason == "stop"
        drawn = {tuple(engine.submit([5, 6], 6, temperature=50.0)) for _ in range(4)}
        assert len(drawn) > 1


def test_a_failure_reaches_all_who_wait(gpt):
    engine = GenerationEngine(gpt, rows=2, blocks=4, block=16, chunk=2, longest=16)
    with engine:
        engine._read = lambda sequence: 1 / 0
        streams = [engine.submit([1], 3) for _ in range(3)]
        for stream in streams:
            with pytest.raises((ZeroDivisionError, ServingError)):
                list(stream)
        with pytest.raises(ServingError, match="does not run"):
            engine.submit([1], 1)


@pytest.mark.parametrize(
    "call, expected",
    [
        (lambda e: e.submit([], 1), "0 tokens"),
        (lambda e: e.submit([1], 0), "new_tokens=0"),
        (lambda e: e.submit([61], 1), r"tokens from 61 to 61.*0 to 60"),
        (lambda e: e.submit([-1], 1), "tokens from -1"),
        (lambda e: e.submit([1] * 10, 10), "at most 16 tokens"),
        (lambda e: e.submit([1], 1, temperature=-1), "temperature=-1"),
        (lambda e: e.submit([1], 1), "does not run"),
    ],
)
def test_wrong_requests(gpt, call, expected):
    engine = GenerationEngine(gpt, rows=1, blocks=17, block=2, chunk=4, longest=16)
    with pytest.raises(ServingError, match=rf"(?s)seen: .*{expected}.*fix: "):
        call(engine)


@pytest.mark.parametrize("option", [{"rows": 0}, {"blocks": 1}, {"chunk": 1}, {"block": 0}, {"max_queue": 0}])
def test_wrong_options(gpt, option):
    with pytest.raises(ServingError, match=r"(?s)seen: .*=.*fix: "):
        GenerationEngine(gpt, **option)


def test_models_that_read_otherwise_are_refused():
    t5 = T5(T5Config(vocab_size=61, d_model=32, d_kv=8, d_ff=48, num_layers=1, num_heads=4))
    window = models.llama.Llama(models.llama.LlamaConfig(**LLAMA, model_type="mistral", sliding_window=4))
    for model in (t5, window):
        with pytest.raises(ServingError, match=r"with an encoder or a window"):
            GenerationEngine(model)


def test_compilation_counts_its_programs(gpt, monkeypatch):
    lines = []
    progress = types.SimpleNamespace(advance=lambda amount, detail="": lines.append((amount, detail)))
    monkeypatch.setattr(generation, "show_progress", lambda text, total: contextlib.nullcontext(progress))
    with GenerationEngine(gpt, rows=1, blocks=3, longest=16, chunk=2):
        pass
    assert lines == [(0, "program 1 of 2"), (1, ""), (0, "program 2 of 2"), (1, "")]
