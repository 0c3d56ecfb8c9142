"""Calls of OneFlow's programs on several ranks: shapes of collectives, saving on one rank, coins, sbp functions."""

import pytest

import sbpjax as flow
from sbpjax.errors import OpError

B, S0 = flow.sbp.broadcast, flow.sbp.split(0)


def ranks(count=2):
    return flow.simulate(ranks=count)


@pytest.mark.parametrize("shape", [(2, 3), (6,), (3, 2), (1, 6), (2, 1, 3)])
def test_all_gather_into_tensor_takes_any_shape_of_as_many_elements(shape):
    @ranks()
    def main():
        out = flow.zeros(*shape)
        flow.comm.all_gather_into_tensor(out, flow.tensor([[1.0 * flow.env.get_rank(), 2.0, 3.0]]))
        return out.shape == shape and out.flatten().tolist()

    assert main() == [[0.0, 2.0, 3.0, 1.0, 2.0, 3.0]] * 2


@pytest.mark.parametrize("shape, given", [((4,), (8,)), ((2, 2), (8,)), ((4,), (4, 2)), ((1, 4), (2, 2, 2))])
def test_reduce_scatter_tensor_takes_any_shape_of_as_many_elements(shape, given):
    @ranks()
    def main():
        out = flow.zeros(*shape)
        flow.comm.reduce_scatter_tensor(out, flow.arange(8).float().reshape(*given))
        return out.flatten().tolist()

    assert main() == [[0.0, 2.0, 4.0, 6.0], [8.0, 10.0, 12.0, 14.0]]


def test_another_number_of_elements_is_refused():
    @ranks()
    def main():
        with pytest.raises(OpError, match=r"float32\[5\](?s:.*)6 elements of float32"):
            flow.comm.all_gather_into_tensor(flow.zeros(5), flow.zeros(3))
        with pytest.raises(OpError, match=r"float32\[5\](?s:.*)6 elements of float32"):
            flow.comm.reduce_scatter_tensor(flow.zeros(3), flow.zeros(5))
        return True

    assert main() == [True, True]


@pytest.mark.parametrize("writer", [0, 1])
@pytest.mark.parametrize("kind", ["local", "global"])
def test_one_rank_saves_and_loads_alone(tmp_path, writer, kind):
    @ranks()
    def main():
        x = flow.arange(3.0)
        if kind == "global":
            x = flow.arange(3.0, placement=flow.placement("cpu", [writer]), sbp=B)
        if flow.env.get_rank() == writer:
            flow.save({"x": x}, tmp_path / "state", **({"global_dst_rank": writer} if kind == "global" else {}))
            return flow.load(tmp_path / "state")["x"].tolist()
        return None

    assert main()[writer] == [0.0, 1.0, 2.0]


def test_each_rank_saves_local_tensors_of_its_own(tmp_path):
    @ranks()
    def main():
        path = tmp_path / f"rank{flow.env.get_rank()}"
        flow.save({"x": flow.full((2,), float(flow.env.get_rank()))}, path)
        return flow.load(path)["x"].tolist()

    assert main() == [[0.0, 0.0], [1.0, 1.0]]


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("sbp", [B, S0])
def test_coins_of_a_placement_are_one_batch(seed, sbp):
    @ranks()
    def main():
        flow.manual_seed(1)
        coin = flow.nn.CoinFlip(batch_size=8, random_seed=seed, placement=flow.placement("cpu", [0, 1]), sbp=sbp)
        drawn = coin(), coin()
        assert drawn[0].shape == (8,) and drawn[0].dtype == flow.int8 and drawn[0].sbp == (sbp,)
        return [d.numpy().tolist() for d in drawn]

    first, second = main()
    assert first == second and first[0] != first[1] and set(first[0]) <= {0, 1}


def test_global_view_takes_an_sbp_function_of_input_and_tensor():
    place = flow.placement("cpu", [0, 1])
    state = {"a": flow.ones(4, 2), "b": [flow.ones(2, 4)], "c": 3}
    requested = []

    def sbp_of(tree, tensor):
        requested.append(tree is state)
        return flow.sbp.split(1) if tensor is state["b"][0] else S0

    found = flow.utils.global_view.to_global(state, place, sbp_of)
    assert found["a"].sbp == (S0,) and found["b"][0].sbp == (flow.sbp.split(1),) and requested == [True, True]
    assert flow.utils.global_view.to_global(state, place, B)["a"].sbp == (B,)
