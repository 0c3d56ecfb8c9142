"""A model goes where its table says, unchanged; what does not fit is one error, and nothing moves."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import PlacementError
from sbpjax.models import Parallel, Sharding, parallelize
from sbpjax.models.llama import Llama, LlamaConfig
from sbpjax.models.parallelize import Layouts
from tests.models.cases import LLAMA, TRAINED

B, S = flow.sbp.broadcast, flow.sbp.split


def spec(**axes):
    return Parallel(**axes, device="cpu")


@pytest.fixture(scope="module")
def abstract():
    """Return models of every family without data."""
    with flow.abstract():
        return {name: make() for name, make in TRAINED.items()}


@pytest.mark.parametrize("case", TRAINED)
def test_every_parameter_has_a_row_and_every_row_a_parameter(case, abstract):
    layouts = Layouts(abstract[case], spec(fsdp=2, tensor=2))
    assert set(layouts.of) == {name for name, _ in abstract[case].named_parameters()}
    named = abstract[case].named_parameters()
    matrices = [layouts.of[name][1] for name, p in named if "blocks" in name and "relative" not in name and p.ndim > 1]
    assert sum(B not in layout for layout in matrices) >= 12  # all matrices of two blocks are split both ways


def test_values_stay_and_lie_where_the_table_says():
    flow.manual_seed(0)
    model = TRAINED["llama"]()
    before = {name: p.detach().numpy().copy() for name, p in model.named_parameters()}
    same = parallelize(model, spec(data=2, fsdp=2, tensor=2))
    assert same is model
    for name, parameter in model.named_parameters():
        assert parameter.requires_grad and isinstance(parameter, nn.Parameter)
        np.testing.assert_array_equal(parameter.detach().numpy(), before[name])
    found = {name: list(p.sbp) for name, p in model.named_parameters()}
    assert found["blocks.0.attention.q.weight"] == [B, S(1), S(0)]
    assert found["blocks.0.attention.out.weight"] == [B, S(0), S(1)]
    assert found["blocks.1.mlp.down.weight"] == [B, S(0), S(1)]
    assert found["norm.weight"] == [B, S(0), B]
    parallelize(model, spec(tensor=2))  # and into another layout
    np.testing.assert_array_equal(model.head.weight.detach().numpy(), before["head.weight"])
    assert list(model.head.weight.sbp) == [S(0)]


def test_a_gradient_goes_with_its_parameter():
    flow.manual_seed(0)
    model = TRAINED["llama"]()
    model(flow.arange(6).reshape(1, 6)).sum().backward()
    before = {name: p.grad.numpy().copy() for name, p in model.named_parameters()}
    parallelize(model, spec(tensor=2))
    for name, parameter in model.named_parameters():
        assert parameter.grad.placement == parameter.placement and parameter.grad.sbp == parameter.sbp
        np.testing.assert_array_equal(parameter.grad.numpy(), before[name])


def test_key_heads_that_do_not_divide_stay_whole(abstract):
    four = Layouts(abstract["llama"], spec(tensor=4)).of
    assert four["blocks.0.attention.k.weight"][1] == [B] and four["blocks.0.attention.q.weight"][1] == [S(0)]
    two = Layouts(abstract["llama"], spec(tensor=2)).of
    assert two["blocks.0.attention.k.weight"][1] == [S(0)]


def test_stages(abstract):
    untied, tied = (Layouts(abstract[name], spec(pipeline=2, tensor=2)) for name in ("llama", "gpt2"))
    first, last = untied.places
    assert untied.of["embedding.weight"][0] == untied.of["blocks.0.mlp.up.weight"][0] == first
    assert untied.of["blocks.1.mlp.up.weight"][0] == untied.of["head.weight"][0] == last
    assert tied.of["norm.weight"][0] == tied.of["token.weight"][0] == first  # the embedding is the output matrix
    assert [Layouts(abstract["llama"], spec(pipeline=2)).stage(f"blocks.{i}") for i in range(2)] == [0, 1]


def test_abstract_models_are_laid_out_too():
    with flow.abstract():
        model = parallelize(Llama(LlamaConfig(**LLAMA)), spec(data=2, tensor=2))
    assert model.head.weight.is_meta and list(model.head.weight.sbp) == [B, S(0)]


@pytest.mark.parametrize(
    "axes, seen",
    [
        ({"tensor": 8}, r"tensor=8\)[\s\S]*4 heads[\s\S]*tensor=8 ≤ 4 heads[\s\S]*tensor=4 at most"),
        ({"pipeline": 3, "data": 2}, r"2 blocks[\s\S]*pipeline=3 × data=2 = 6[\s\S]*3 ≤ 2[\s\S]*pipeline=2 at most"),
        ({"data": 16}, r"8 devices[\s\S]*data=16"),
    ],
)
def test_a_spec_that_does_not_fit_moves_nothing(axes, seen):
    model = TRAINED["llama"]()
    with pytest.raises(PlacementError, match=seen):
        parallelize(model, spec(**axes))
    assert not any(p.is_global for p in model.parameters())


def test_a_parameter_without_a_row_is_named():
    model = TRAINED["llama"]()
    model.extra = nn.Linear(2, 2)
    with pytest.raises(PlacementError, match=r"extra.weight of shape \(2, 2\)[\s\S]*add a row for 'extra.weight'"):
        parallelize(model, spec(tensor=2))


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(6, 8, bias=False), nn.Linear(8, 6, bias=False)

    def forward(self, x):
        return self.down(self.up(x).relu())


def test_a_class_of_a_script_has_no_table(monkeypatch):
    monkeypatch.setattr(Two, "__module__", "__main__")
    with pytest.raises(PlacementError, match=r"(?s)a class of __main__, which is in no package.*fix: .*Sharding"):
        parallelize(Two(), spec(tensor=2))


def test_a_model_of_ones_own():
    with pytest.raises(PlacementError, match="no SHARDING in tests.models.sharding"):
        parallelize(Two(), spec(tensor=2))
    rows = {"up.weight": ("hidden", "width"), "down.weight": ("width", "hidden")}
    table = Sharding(rows, axis_sizes=lambda config: {"hidden": 8})
    x = flow.randn(4, 6)
    model = Two()
    want = model(x)
    parallelize(model, spec(tensor=2), table)
    with flow.boxing_policy("error"):
        found = model(x.to_global(spec(tensor=2).placement, B))
    assert found.sbp == (flow.sbp.partial_sum,)
    np.testing.assert_allclose(found.detach().numpy(), want.detach().numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(PlacementError, match=r"up.weight of shape \(8, 6\), logical axes \('hidden',\)"):
        parallelize(Two(), spec(tensor=2), Sharding({"*": ("hidden",)}, axis_sizes=lambda config: {}))
