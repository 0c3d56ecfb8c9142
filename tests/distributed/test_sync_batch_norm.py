"""Synchronised batch norms of local tensors, among threads as ranks and under the launcher."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import errors, nn
from tests.distributed.running import passed
from tests.distributed.scripts.batch_norm import TOLERANCE, check

ROWS = [[4, 4], [0, 6], [2, 2, 2, 2], [5, 0, 1, 3]]


@pytest.mark.parametrize(("rows", "dims"), [*((rows, 1) for rows in ROWS), ([1, 4], 2), ([2, 3, 0, 1], 3)], ids=str)
def test_ranks_train_as_one_process(rows, dims):
    flow.simulate(ranks=len(rows))(lambda: check(rows, dims))()


@pytest.mark.parametrize("options", [{"momentum": None}, {"affine": False}, {"track_running_stats": False}], ids=str)
def test_options(options):
    flow.simulate(ranks=2)(lambda: check([2, 5], 2, **options))()


def test_four_processes_train_as_one():
    passed("batch_norm.py", 4)


def test_means_far_from_zero_keep_their_variance():
    x = np.random.default_rng(0).normal(size=(7, 2)).astype("f4") + 3000

    @flow.simulate(ranks=2)
    def main():
        mine = x[:3] if flow.env.get_rank() == 0 else x[3:]
        return nn.SyncBatchNorm(2)(flow.tensor(mine)).detach().numpy()

    wide = x.astype("f8")
    want = (wide - wide.mean(0)) / np.sqrt(wide.var(0) + 1e-5)
    np.testing.assert_allclose(np.concatenate(main()), want, atol=1e-3)  # x has 2e-4 of resolution


def test_bfloat16_has_statistics_of_float32():
    x = np.random.default_rng(0).normal(size=(8, 2)).astype("f4")

    @flow.simulate(ranks=2)
    def main():
        rank = flow.env.get_rank()
        layer = nn.SyncBatchNorm(2, dtype=flow.bfloat16)
        out = layer(flow.tensor(x[4 * rank : 4 * rank + 4]).to(flow.bfloat16))
        return str(out.dtype), out.float().detach().numpy()

    ends = main()
    whole = nn.BatchNorm1d(2, dtype=flow.bfloat16)(flow.tensor(x).to(flow.bfloat16)).float().detach().numpy()
    assert ends[0][0] == str(flow.bfloat16)
    np.testing.assert_array_equal(np.concatenate([out for _, out in ends]), whole)


def test_the_group_says_whose_rows_are_one_batch():
    @flow.simulate(ranks=4)
    def main():
        rank = flow.env.get_rank()
        group = flow.distributed.new_group([0, 2] if rank % 2 == 0 else [1, 3])
        layer = nn.SyncBatchNorm(1, momentum=1.0, process_group=group)
        layer(flow.tensor([[float(rank)], [float(rank)]]))
        return layer.running_mean.item()

    assert main() == [1.0, 2.0, 1.0, 2.0]


def test_without_any_rows_the_running_statistics_stay():
    @flow.simulate(ranks=2)
    def main():
        layer = nn.SyncBatchNorm(2)
        assert layer(flow.ones(0, 2)).shape == (0, 2)
        return layer.running_mean.tolist(), layer.running_var.tolist()

    assert main() == [([0.0, 0.0], [1.0, 1.0])] * 2


def test_second_derivatives():
    x = np.random.default_rng(0).normal(size=(6, 2)).astype("f4")

    def curvature(layer, part):
        v = flow.tensor(part).requires_grad_()
        (grad,) = flow.autograd.grad((layer(v) ** 3).sum(), v, create_graph=True)
        (grad * grad).sum().backward()
        return v.grad.numpy()

    @flow.simulate(ranks=2)
    def main():
        return curvature(nn.SyncBatchNorm(2), x[:2] if flow.env.get_rank() == 0 else x[2:])

    np.testing.assert_allclose(np.concatenate(main()), curvature(nn.BatchNorm1d(2), x), rtol=1e-3, atol=1e-3)


class Own(nn.BatchNorm2d):
    pass


def test_every_batch_norm_is_converted():
    model = nn.Sequential(
        Own(2, eps=0.5), nn.FusedBatchNorm1d(3), nn.ModuleList([nn.LazyBatchNorm1d(), nn.InstanceNorm1d(2)])
    )
    made = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    made[2][0](flow.ones(2, 3))
    assert [isinstance(m, nn.SyncBatchNorm) for m in (made[0], made[1], *made[2])] == [True, True, True, False]
    assert made[0].eps == 0.5 and made[1](-flow.ones(2, 3)).min() >= 0


def test_a_graph_of_global_tensors_takes_all_rows():
    x = np.random.default_rng(0).normal(size=(6, 3)).astype("f4")
    where = flow.placement("cpu", [0, 1])

    class Step(nn.Graph):
        def __init__(self, model):
            super().__init__()
            self.model = model
            self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))

        def build(self, x):
            out = self.model(x)
            (out**3).sum().backward()
            return out

    plain, sync = nn.BatchNorm1d(3), nn.SyncBatchNorm(3).to_global(where, flow.sbp.broadcast)
    want = Step(plain)(flow.tensor(x))
    got = Step(sync)(flow.tensor(x).to_global(where, flow.sbp.split(0)))
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=TOLERANCE, atol=TOLERANCE)
    for name, value in plain.state_dict().items():
        np.testing.assert_allclose(sync.state_dict()[name].numpy(), value.numpy(), rtol=TOLERANCE, atol=TOLERANCE)


def test_local_tensors_in_a_traced_program_are_refused():
    @flow.simulate(ranks=2)
    def main():
        layer = nn.SyncBatchNorm(3)
        with pytest.raises(errors.DistributedError, match="SyncBatchNorm") as raised:
            flow.compile(lambda x: layer(x))(flow.ones(2, 3))
        assert "to_global" in str(raised.value)

    main()
