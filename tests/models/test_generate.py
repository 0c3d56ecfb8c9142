"""Generation: the tokens of `transformers`, on one device and on a mesh; samples of the right distribution."""

import json

import jax
import numpy as np
import pytest

import sbpjax as flow
from sbpjax import models
from sbpjax.errors import OpValueError
from sbpjax.models.generate import TokenSampler
from tests.models.record import DATA, NEW_TOKENS, PROMPTS

RECORDED = json.loads((DATA / "generated.json").read_text())


def until(stop, rows):
    """Return rows up to a token, itself included."""
    return [row[: row.index(stop) + 1] if stop in row else row for row in rows]


@pytest.mark.parametrize("case", RECORDED)
def test_greedy_tokens_are_those_of_transformers(case):
    model, recorded = models.from_pretrained(DATA / case), RECORDED[case]
    assert models.generate(model, PROMPTS, NEW_TOKENS) == recorded["greedy"]
    assert models.generate(model, PROMPTS, NEW_TOKENS, stop=[recorded["stop"]]) == until(
        recorded["stop"], recorded["stopped"]
    )
    assert not model.training  # as it was


@pytest.mark.parametrize("case", ["llama", "gpt2", "t5"])
def test_a_mesh_says_the_same(case):
    spec = models.Parallel(data=2, fsdp=2, tensor=2, device="cpu")
    model = models.from_pretrained(DATA / case, spec)
    assert models.generate(model, PROMPTS, NEW_TOKENS, spec) == RECORDED[case]["greedy"]
    assert models.generate(model, PROMPTS[:1], NEW_TOKENS, spec) == RECORDED[case]["greedy"][:1]  # fewer than data


@pytest.mark.exhaustive
def test_beams_on_a_mesh():
    spec = models.Parallel(data=2, tensor=2, device="cpu")
    model = models.from_pretrained(DATA / "gpt2", spec)
    assert models.generate(model, PROMPTS, NEW_TOKENS, spec, beams=3) == RECORDED["gpt2"]["beams"]


@pytest.mark.parametrize("case", RECORDED)
def test_beams_are_those_of_transformers(case):
    model, recorded = models.from_pretrained(DATA / case), RECORDED[case]
    assert models.generate(model, PROMPTS, NEW_TOKENS, beams=3) == recorded["beams"]
    found = models.generate(model, PROMPTS, NEW_TOKENS, beams=3, stop=[recorded["stop"]], length_penalty=0.5)
    assert found == until(recorded["stop"], recorded["stopped_beams"])


def test_programs_are_kept():
    generator = models.Generator(models.from_pretrained(DATA / "llama"))
    first = generator(PROMPTS, NEW_TOKENS)
    compiled = []

    def listen(event, *_, **__):
        compiled.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        assert generator(PROMPTS, NEW_TOKENS) == first
        other = generator([[1], [2, 3], [4, 5, 6, 7, 8, 9], [1, 1]], NEW_TOKENS + 3)  # of as many slots
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert not [event for event in compiled if "backend_compile" in event]
    assert [len(row) for row in other] == [NEW_TOKENS + 3] * 4


def drawn(logits, count=20_000, **options):
    """Return how often each token is chosen."""
    flow.manual_seed(0)
    many = flow.tensor(np.tile(np.array(logits, np.float32), (count, 1)))
    tokens = TokenSampler(**options)(many)
    assert tokens.shape == (count, 1)
    return np.bincount(tokens.numpy()[:, 0], minlength=len(logits)) / count


@pytest.mark.parametrize(
    "options, kept",
    [
        ({"temperature": 1.0}, [1, 1, 1, 1]),
        ({"temperature": 2.0}, [1, 1, 1, 1]),
        ({"temperature": 1.0, "top_k": 2}, [0, 1, 1, 0]),
        ({"temperature": 1.0, "top_k": 9}, [1, 1, 1, 1]),
        ({"temperature": 1.0, "top_p": 0.6}, [0, 1, 1, 0]),
        ({"temperature": 1.0, "top_p": 0.4}, [0, 0, 1, 0]),
        ({"temperature": 0.0, "top_p": 0.9}, [0, 0, 1, 0]),
        ({"temperature": 1.0, "top_k": 3, "top_p": 0.95}, [1, 1, 1, 0]),
    ],
)
def test_samples_have_the_distribution(options, kept):
    odds = np.array([0.15, 0.3, 0.5, 0.05])
    want = np.where(kept, odds ** (1 / (options["temperature"] or 1.0)), 0)
    np.testing.assert_allclose(drawn(np.log(odds), **options), want / want.sum(), atol=0.015)


def test_seeds_say_which_sample():
    generator = models.Generator(models.from_pretrained(DATA / "gpt2"), temperature=1.5)
    recorded = []
    for seed in (0, 0, 1):
        flow.manual_seed(seed)
        recorded.append(generator(PROMPTS, NEW_TOKENS))
    assert recorded[0] == recorded[1] != recorded[2]


@pytest.mark.parametrize(
    "call, seen",
    [
        (lambda m: models.generate(m, [], 1), "0 prompts"),
        (lambda m: models.generate(m, [[1], []], 1), "the shortest of 0 tokens"),
        (lambda m: models.generate(m, [[1]], 0), "0 new ones"),
        (lambda m: models.Generator(m, temperature=-1.0), "temperature=-1.0"),
        (lambda m: models.Generator(m, top_k=0), "top_k=0"),
        (lambda m: models.Generator(m, top_p=1.5), "top_p=1.5"),
        (lambda m: models.Generator(m, beams=0), "beams=0"),
        (lambda m: models.Generator(m, beams=2, temperature=1.0), "beams=2, temperature=1.0"),
        (lambda m: models.Generator(m, models.Parallel(pipeline=2)), "pipeline=2"),
    ],
)
def test_what_cannot_be_generated_is_one_error(call, seen):
    model = models.from_pretrained(DATA / "gpt2")
    with pytest.raises(OpValueError, match=seen):
        call(model)
