"""`explain` and `visualize` on tensors."""

import pytest

import sbpjax as flow
from sbpjax.errors import MixedTensorError


@pytest.fixture
def place():
    return flow.placement("cpu", [0, 1, 2, 3])


def test_an_op_and_a_function(place):
    x = flow.ones(8, 64, placement=place, sbp=flow.sbp.split(1))
    w = flow.ones(64, 4, placement=place, sbp=flow.sbp.split(0))
    found = flow.explain(flow.matmul, x, w)
    assert found.bytes == 0
    assert "S1 | S0 → P" in str(found)
    found = flow.explain(lambda a, b: flow.relu(a @ b), x, w)
    assert [b.steps[0].kind for b in found.boxings if b.bytes] == ["psum_scatter"]


def test_a_training_step_is_explained_without_running(place):
    model = flow.nn.Linear(16, 8).to_global(place, flow.sbp.broadcast)
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
    before = model.weight.numpy()

    def step(x):
        loss = (model(x) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss

    x = flow.ones(64, 16, placement=place, sbp=flow.sbp.split(0))
    found = flow.explain(step, x, state=(model, optimizer))
    assert {s.kind for b in found.boxings for s in b.steps if s.bytes} == {"psum"}
    assert (model.weight.numpy() == before).all()
    assert model.weight.grad is None


def test_local_tensors_have_no_plan_and_no_picture(place):
    x = flow.ones(2, 3)
    with pytest.raises(MixedTensorError, match=r"(?s)explain\(relu.*fix: .*to_global"):
        flow.explain(flow.relu, x)
    with pytest.raises(MixedTensorError, match=r"(?s)visualize.*fix: .*to_global"):
        flow.visualize(x)


def test_visualize(place):
    text = str(flow.visualize(flow.ones(7, 4, placement=place, sbp=flow.sbp.split(0))))
    assert text.splitlines()[-1] == "rank 3  [6:7, 0:4]"
