"""`simulate`: threads as ranks."""

import pytest

import sbpjax as flow
from sbpjax import errors


def test_ranks_and_locals():
    @flow.simulate(ranks=4)
    def main(scale):
        rank = flow.env.get_rank()
        everywhere = flow.placement.all("cpu")
        assert flow.env.get_world_size() == 4 and list(everywhere.ranks) == [0, 1, 2, 3]
        x = flow.full((2,), float(rank) * scale).to_global(everywhere, flow.sbp.split(0))
        assert tuple(x.shape) == (8,) and x.sum().item() == 2 * 6 * scale
        assert x.to_local().tolist() == [rank * scale] * 2
        mine = flow.tensor([rank + 1.0])
        with pytest.raises(
            errors.AgreementError, match=r"(?s)ranks \[0\]: .*same values.*split\(0\)\].*check_values=False"
        ):
            mine.to_global(everywhere, flow.sbp.broadcast, check_values=True)
        voice = mine.to_global(everywhere, flow.sbp.broadcast, check_values=False)
        assert voice.item() == 1.0
        assert mine.to_global(everywhere, flow.sbp.broadcast).item() == 1.0
        total = flow.tensor([rank + 1.0]).to_global(everywhere, flow.sbp.partial_sum)
        assert total.item() == 10.0 and total.to_local().item() == rank + 1.0
        return rank

    with pytest.warns(UserWarning, match=r"(?s)ranks \[0\]: .*one value: the first rank's is taken"):
        assert main(2.0) == [0, 1, 2, 3]
    assert flow.env.get_world_size() == 1


def test_gradients_go_back_to_the_locals():
    @flow.simulate(ranks=2)
    def main():
        everywhere = flow.placement.all("cpu")
        x = flow.ones(2).requires_grad_()
        w = flow.arange(4, dtype=flow.float32, placement=everywhere, sbp=flow.sbp.split(0))
        (x.to_global(everywhere, flow.sbp.split(0)) * w).sum().backward()
        return x.grad.tolist()

    assert main() == [[0.0, 1.0], [2.0, 3.0]]


def test_each_rank_has_its_own_random_state_and_modes():
    @flow.simulate(ranks=2)
    def main():
        flow.manual_seed(flow.env.get_rank())
        flow.distributed.barrier()
        first = flow.rand(1).item()
        with flow.no_grad():
            flow.distributed.barrier()
            assert not flow.is_grad_enabled()
        flow.manual_seed(flow.env.get_rank())
        assert flow.rand(1).item() == first
        return first

    a, b = main()
    assert a != b


def test_an_error_of_one_rank_ends_all():
    ended = []

    @flow.simulate(ranks=3)
    def main():
        try:
            if flow.env.get_rank() == 1:
                raise ValueError("mine")
            flow.distributed.barrier()
        finally:
            ended.append(flow.env.get_rank())

    with pytest.raises(ValueError, match="mine") as raised:
        main()
    assert raised.value.__notes__ == ["raised by rank 1 of 3 in sbpjax.simulate"]
    assert {0, 1} <= set(ended)  # rank 2 had not begun, or ended too


@pytest.mark.parametrize("other", [lambda: None, lambda: flow.distributed.all_reduce(flow.ones(2))])
def test_different_code_on_one_rank_is_an_error(other):
    @flow.simulate(ranks=2)
    def main():
        other() if flow.env.get_rank() else flow.distributed.barrier()

    with pytest.raises(errors.DistributedError, match="barrier") as raised:
        main()
    assert "\n  fix:  " in str(raised.value)


@pytest.mark.parametrize("ranks", [0, 99, True, "2"])
def test_bad_numbers_of_ranks(ranks):
    with pytest.raises(errors.DistributedError, match="simulate"):
        flow.simulate(ranks=ranks)(lambda: None)()


def test_no_ranks_within_ranks():
    with pytest.raises(errors.DistributedError, match="2 ranks"):
        flow.simulate(ranks=2)(lambda: flow.simulate(ranks=2)(lambda: None)())()


def test_a_checkpoint_that_all_ranks_wait_for(tmp_path):
    @flow.simulate(ranks=2)
    def main():
        x = (flow.ones(2) * flow.env.get_rank()).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(0))
        flow.save({"x": x}, tmp_path / "state", global_dst_rank=0)
        return flow.load(tmp_path / "state", global_src_rank=0)["x"].numpy().tolist()

    assert main() == [[0.0, 0.0, 1.0, 1.0]] * 2
