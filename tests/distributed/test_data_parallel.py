"""Data parallelism of local modules."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import errors
from sbpjax._core import naming


def test_one_process_is_the_module_itself():
    module = flow.nn.Linear(3, 2)
    wrapped = flow.nn.parallel.DistributedDataParallel(module)
    x = flow.ones(4, 3)
    assert (wrapped(x) == module(x)).all()
    assert list(wrapped.state_dict()) == ["module.weight", "module.bias"]
    with wrapped.no_sync():
        wrapped(x).sum().backward()
    assert module.weight.grad is not None


def test_global_modules_are_called_as_they_are():
    where = flow.placement("cpu", [0, 1])
    module = flow.nn.Linear(3, 2).to_global(where, flow.sbp.broadcast)
    wrapped = flow.nn.parallel.DistributedDataParallel(module)
    x = flow.ones(4, 3, placement=where, sbp=flow.sbp.split(0))
    wrapped(x).sum().backward()
    assert (wrapped(x) == module(x)).all() and module.weight.grad.is_global
    assert wrapped.in_features == 3  # OneFlow returns the module itself


def test_mixed_modules_are_refused():
    where = flow.placement("cpu", [0, 1])
    module = flow.nn.Sequential(flow.nn.Linear(3, 2).to_global(where, flow.sbp.broadcast), flow.nn.Linear(2, 2))
    with pytest.raises(errors.MixedTensorError, match="1.weight"):
        flow.nn.parallel.DistributedDataParallel(module)


@flow.simulate(ranks=2)
def a_sparse_table():
    model = flow.nn.parallel.DistributedDataParallel(flow.nn.Sequential(flow.nn.Embedding(5, 2, sparse=True)))
    model(flow.tensor([flow.env.get_rank()])).sum().backward()


def test_a_gradient_of_rows_is_refused_with_what_makes_it_dense():
    with pytest.raises(errors.OpTypeError, match=r"(?s)0.weight has a gradient of rows.*fix:  .*sparse=False"):
        a_sparse_table()


@flow.simulate(ranks=3)
def two_layers(**options):
    """Train on each rank's own batch; return what each rank ends with."""
    rank = flow.env.get_rank()
    flow.manual_seed(rank)  # the state of rank 0 holds
    module = flow.nn.Sequential(flow.nn.Linear(2, 4), flow.nn.BatchNorm1d(4), flow.nn.Linear(4, 1))
    model = flow.nn.parallel.DistributedDataParallel(module, **options)
    start = module[0].weight.numpy().copy()
    x = flow.tensor(np.random.default_rng(rank).normal(size=(6, 2)).astype(np.float32))
    with model.no_sync():
        model(x).square().mean().backward()
    alone = module[0].weight.grad.numpy().copy()
    module.zero_grad()
    model(x).square().mean().backward()
    together = module[0].weight.grad.numpy().copy()
    with model.no_sync():
        model(x).square().mean().backward()
    model(x).square().mean().backward()  # what has added up is averaged: the mean of the last, plus two own gradients
    return start, alone, together, module[0].weight.grad.numpy().copy(), module[1].running_mean.numpy()


@pytest.mark.parametrize("options", [{}, {"bucket_cap_mb": 0}, {"find_unused_parameters": True}])
def test_gradients_are_averaged(options):
    ends = two_layers(**options)
    mean = np.mean([alone for _, alone, _, _, _ in ends], 0)
    for start, _, together, summed, _ in ends:
        np.testing.assert_array_equal(start, ends[0][0])
        np.testing.assert_allclose(together, mean, rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(summed, ends[0][3])
        np.testing.assert_allclose(summed, 3 * mean, rtol=1e-4, atol=1e-6)
    assert any((ends[0][1] != alone).any() for _, alone, _, _, _ in ends)


def test_all_gradients_are_reduced_in_one_program(monkeypatch):
    from sbpjax.distributed import collectives

    calls = []

    @flow.simulate(ranks=2)
    def main():
        model = flow.nn.parallel.DistributedDataParallel(flow.nn.Sequential(*[flow.nn.Linear(2, 2) for _ in range(50)]))
        run = collectives.run
        if flow.env.get_rank() == 0:
            monkeypatch.setattr(collectives, "run", lambda *a, **k: calls.append(len(a[3])) or run(*a, **k))
        flow.distributed.barrier()
        model(flow.ones(1, 2)).sum().backward()

    main()
    assert calls == [100, 100]  # once per rank


def test_the_program_has_one_collective_per_bucket():
    import jax

    from sbpjax.distributed import bodies, group

    def collectives(cap_bytes):
        program, sharding = group._program(
            bodies.average, (("cap_bytes", cap_bytes),), tuple(jax.devices()[:2]), (1,) * 20
        )
        arrays = [jax.ShapeDtypeStruct((2 * 16,), np.float32, sharding=sharding)] * 20
        text = program.lower(*arrays).compile().as_text()
        return text.count(" all-reduce(") + text.count(" all-reduce-start(")

    assert collectives(1 << 20) == 1
    assert 1 <= collectives(64 * 10) <= 2  # XLA may join the two buckets


class Forked(flow.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (flow.nn.Linear(1, 1, bias=False) for _ in range(3))

    def forward(self, x, which):
        return self.a(x) if which == "a" else self.b(x)


def test_unused_parameters():
    @flow.simulate(ranks=2)
    def main():
        module = Forked()
        model = flow.nn.parallel.DistributedDataParallel(module, find_unused_parameters=True)
        model(flow.ones(1, 1), "a" if flow.env.get_rank() else "b").sum().backward()
        return module.a.weight.grad.item(), module.b.weight.grad.item(), module.c.weight.grad

    assert main() == [(0.5, 0.5, None)] * 2


@pytest.fixture
def as_torch():
    naming.push_name("torch")
    yield
    naming.remove_name("torch")


def test_unused_parameters_must_be_announced_to_torch(as_torch):
    @flow.simulate(ranks=2)
    def main():
        model = flow.nn.parallel.DistributedDataParallel(Forked())
        model(flow.ones(1, 1), "a").sum().backward()
        with pytest.raises(errors.AutogradError, match="b.weight, c.weight") as raised:
            model(flow.ones(1, 1), "a")
        assert "find_unused_parameters=True" in str(raised.value)
        assert "Expected to have finished reduction in the prior iteration" in str(raised.value)
        assert isinstance(raised.value, RuntimeError)

    main()


@pytest.mark.parametrize("option", ["find_unused_parameters", "static_graph"])
def test_announced_unused_parameters_train_under_torch(as_torch, option):
    @flow.simulate(ranks=2)
    def main():
        module = Forked()
        model = flow.nn.parallel.DistributedDataParallel(module, **{option: True})
        for _ in range(2):
            model(flow.ones(1, 1), "a" if flow.env.get_rank() else "b").sum().backward()
        return module.a.weight.grad.item(), module.c.weight.grad

    assert main() == [(pytest.approx(1.0), None)] * 2


def test_missing_gradients_count_as_zeros():
    @flow.simulate(ranks=2)
    def main():
        flow.manual_seed(flow.env.get_rank())
        module = Forked()
        model = flow.nn.parallel.DistributedDataParallel(module)
        optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
        model(flow.ones(1, 1), "a" if flow.env.get_rank() else "b").sum().backward()
        grads = [p.grad.item() for p in module.parameters()]
        optimizer.step()
        return grads, [p.item() for p in module.parameters()]

    (grads, weights), other = main()
    assert grads == [0.5, 0.5, 0.0]
    assert other == (grads, weights)


def test_a_backward_that_reaches_no_parameter_takes_part():
    @flow.simulate(ranks=2)
    def main():
        module = Forked()
        model = flow.nn.parallel.DistributedDataParallel(module)
        x = flow.ones(1, 1, requires_grad=True)
        out = model(x, "a")
        out = out if flow.env.get_rank() else out * 0 + x
        out.sum().backward()
        return module.a.weight.grad.item()

    assert main() == [0.5, 0.5]


def test_every_backward_is_averaged():
    @flow.simulate(ranks=2)
    def main():
        rank = flow.env.get_rank()
        module = flow.nn.Linear(1, 1, bias=False)
        model = flow.nn.parallel.DistributedDataParallel(module)
        first, second = model(flow.ones(1, 1) * (1 + rank)), model(flow.ones(1, 1) * (1 + 4 * rank))
        first.sum().backward()
        second.sum().backward()
        chosen = model(flow.ones(1, 1) * rank)
        flow.autograd.backward(chosen.sum(), inputs=[module.weight])
        alone = flow.autograd.grad(model(flow.ones(1, 1) * (1 + rank)).sum(), module.weight)[0]
        return module.weight.grad.item(), alone.item()

    assert main() == [(5.0, 1.0), (5.0, 2.0)]  # 1.5 + 3 + 0.5; `grad` is each rank's own


class Wrapped:
    def __init__(self, value):
        self.value = value


def test_outputs_of_any_class():
    class Module(flow.nn.Linear):
        def forward(self, x):
            return Wrapped(super().forward(x))

    @flow.simulate(ranks=2)
    def main():
        module = Module(1, 1)
        model = flow.nn.parallel.DistributedDataParallel(module)
        model(flow.ones(1, 1) * (1 + flow.env.get_rank())).value.sum().backward()
        return module.weight.grad.item()

    assert main() == [1.5, 1.5]


def test_a_failed_backward_leaves_nothing_behind():
    class Fails(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            raise KeyError("once")

    @flow.simulate(ranks=2)
    def main():
        module = flow.nn.Linear(1, 1, bias=False)
        model = flow.nn.parallel.DistributedDataParallel(module)
        with pytest.raises(KeyError):
            model(Fails.apply(flow.ones(1, 1, requires_grad=True))).sum().backward()
        module.zero_grad()
        model(flow.ones(1, 1) * (1 + flow.env.get_rank())).sum().backward()
        return module.weight.grad.item()

    assert main() == [1.5, 1.5]


@pytest.mark.parametrize("broadcast", [True, False])
def test_buffers_are_copied_only_if_asked(broadcast):
    @flow.simulate(ranks=2)
    def main():
        rank = flow.env.get_rank()
        module = flow.nn.BatchNorm1d(1, momentum=0.0)
        module.running_mean.fill_(float(rank))
        model = flow.nn.parallel.DistributedDataParallel(module, broadcast_buffers=broadcast)
        start = module.running_mean.item()
        model(flow.tensor([[1.0], [2.0]])).sum().backward()
        return start, module.running_mean.item()

    assert main() == [(0.0, 0.0), (0.0, 0.0) if broadcast else (1.0, 1.0)]


def test_different_modules_are_an_error_on_all_ranks():
    @flow.simulate(ranks=2)
    def main():
        with pytest.raises(errors.AgreementError, match=r"rank 0 has 'weight' float32\[2, 2\], rank 1 .*\[2, 3\]"):
            flow.nn.parallel.DistributedDataParallel(flow.nn.Linear(2 + flow.env.get_rank(), 2))

    main()
