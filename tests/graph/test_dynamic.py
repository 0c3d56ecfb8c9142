"""Dynamic sizes: padding to buckets changes neither values nor layouts, and a wrong mask is found."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import GraphConfigError, GraphError
from sbpjax.graph import Dynamic

F = nn.functional
VOCAB = 11
INPUTS = {"ids": 1, "mask": 1, "labels": (1, -100)}


class Model(nn.Module):
    """Embedding, attention under a mask, a head."""

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(VOCAB, 8), nn.Linear(8, VOCAB)

    def forward(self, ids, mask):
        x = self.embed(ids).unsqueeze(1)
        seen = None if mask is None else mask.bool()[:, None, None]
        return self.head(F.scaled_dot_product_attention(x, x, x, seen).squeeze(1))


def batch(length, **where):
    rng = np.random.default_rng(length)
    ids, labels = rng.integers(0, VOCAB, (2, 4, length))
    return [flow.tensor(a, **where) for a in (ids, np.ones_like(ids), labels)]


def trainer(dynamic, masked=True):
    flow.manual_seed(0)
    model = Model()
    optimizer = flow.optim.Adam(model.parameters(), lr=0.01)

    class Train(nn.Graph):
        def __init__(self):
            super().__init__(dynamic=dynamic)
            self.model = model
            self.add_optimizer(optimizer)

        def build(self, ids, mask, labels):
            logits = self.model(ids, mask if masked else None)
            loss = F.cross_entropy(logits.reshape(-1, VOCAB), labels.reshape(-1), ignore_index=-100)
            loss.backward()
            return {"loss": loss, "logits": logits}

    return Train(), model


def test_padded_steps_train_as_those_without_padding():
    dynamic = Dynamic((4, 8), INPUTS, {"result['logits']": 1}, check=True)
    (padded, model), (plain, other) = trainer(dynamic), trainer(None)
    for length in (3, 7, 4, 5):
        a, b = padded(*batch(length)), plain(*batch(length))
        assert a["logits"].shape == (4, length, VOCAB)
        np.testing.assert_allclose(a["logits"].numpy(), b["logits"].numpy(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(a["loss"].numpy(), b["loss"].numpy(), rtol=1e-5)
    for x, y in zip(model.parameters(), other.parameters(), strict=True):
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-3, atol=1e-5)


def test_a_program_serves_all_sizes_of_a_bucket():
    graph, _ = trainer(Dynamic((4, 8), INPUTS, {"result['logits']": 1}))
    for length in (2, 3, 4, 5, 6, 7):
        graph(*batch(length))
    assert len(graph._g.programs) == 2


@pytest.mark.parametrize("wrapped", [True, False], ids=["graph", "compile"])
def test_a_missing_mask_is_found(wrapped):
    dynamic = Dynamic((8,), INPUTS, {"result['logits']": 1}, check=True)
    if wrapped:
        call, model = trainer(dynamic, masked=False)
    else:
        model = Model()

        @flow.compile(state=(model,), dynamic=dynamic)
        def call(ids, mask, labels):
            return {"logits": model(ids, None)}

    before = [x.numpy() for x in model.parameters()]
    with pytest.raises(GraphError, match=r"result\['lo(ss|gits)'\] differs by .* padded from 5 to 8"):
        call(*batch(5))
    for x, y in zip(model.parameters(), before, strict=True):
        np.testing.assert_array_equal(x.numpy(), y)


def test_a_compiled_function_keeps_the_layout_of_its_inputs():
    placement = flow.placement("cpu", [0, 1])
    model = Model().to_global(placement, flow.sbp.broadcast)
    dynamic = Dynamic((4, 8), {"ids": 1, "mask": 1}, {"result": 1})
    logits = flow.compile(lambda ids, mask: model(ids, mask), state=(model,), dynamic=dynamic)
    for length in (3, 4):
        ids, mask, _ = batch(length, placement=placement, sbp=flow.sbp.split(0))
        found = logits(ids, mask)
        assert found.shape == (4, length, VOCAB) and found.sbp == (flow.sbp.split(0),)
        np.testing.assert_allclose(found.numpy(), model(ids, mask).numpy(), rtol=1e-4, atol=1e-5)
    assert len(logits._programs) == 1


@pytest.mark.parametrize(
    ("inputs", "outputs", "length", "text"),
    [
        (INPUTS, {}, 9, r"seen: ids: 9, mask: 9, labels: 9\n.*largest bucket is 8\n.*\(4, 8, 9\)"),
        ({"ids": 1, "mask": 0}, {}, 3, "seen: ids: 3, mask: 4\n.*have one size"),
        ({"tokens": 1}, {}, 3, "seen: an input 'tokens'\n.*names tensors: ids, mask, labels"),
        ({"ids": 2}, {}, 3, r"ids of shape \[4, 3\]\n.*its dim 2"),
        (INPUTS, {"result['loss']": 0}, 3, "result.*its dim 0"),
        (INPUTS, {"result['logits']": 0}, 3, "of size 4 in dim 0\n|of size 4 in dim 0"),
        (INPUTS, {"result['hidden']": 0}, 3, "an output .*hidden.*\n.*result.'loss'."),
    ],
)
def test_refused_calls_name_sizes_and_paths(inputs, outputs, length, text):
    graph, _ = trainer(Dynamic((8,) if "logits" in str(outputs) else (4, 8), inputs, outputs))
    with pytest.raises(GraphError, match=f"(?s){text}"):
        graph(*batch(length))


def test_buckets_ascend():
    for buckets in ((), (8, 4), (4, 4), (0, 2), (2.5,)):
        with pytest.raises(GraphConfigError, match="positive sizes that ascend"):
            Dynamic(buckets, {"ids": 1})
    with pytest.raises(GraphConfigError, match="no inputs"):
        Dynamic((4,), {})
