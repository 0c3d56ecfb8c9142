"""Names of PyTorch that older programs and libraries import: parallel modules, futures, timers, writers."""

from collections import namedtuple

import numpy as np
import pytest
import torch as real

import sbpjax as flow
from sbpjax import mock_torch

TOLERANCE = 1e-6
Pair = namedtuple("Pair", "x k")


@pytest.fixture
def torch():
    with mock_torch.enable():
        import torch

        yield torch


@pytest.fixture(params=["alias", "pytorch"])
def either(request):
    yield real if request.param == "pytorch" else request.getfixturevalue("torch")


def train(torch, model, steps=3):
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.1), []
    for step in range(steps):
        torch.manual_seed(step)
        loss = model(torch.randn(10, 4)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def test_data_parallel_computes_on_all_devices_with_the_numbers_of_one(torch):
    seen = []

    class Look(torch.nn.Module):
        def forward(self, x):
            seen.append((x.is_global, x.sbp if x.is_global else None, (x + torch.ones(8)).shape))
            return x

    def build():
        torch.manual_seed(0)
        nn = torch.nn
        return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), Look(), nn.Linear(8, 2))

    single, model = build(), torch.nn.DataParallel(build())
    assert torch.nn.parallel.DataParallel is torch.nn.DataParallel
    wanted = train(torch, single)
    assert seen.pop()[0] is False
    assert np.allclose(train(torch, model), wanted, atol=TOLERANCE)
    assert seen[-1] == (True, (flow.sbp.split(0),), (10, 8))
    assert torch.allclose(model.module[1].running_mean, single[1].running_mean, atol=TOLERANCE)
    assert next(iter(model.state_dict())) == "module.0.weight" and not model.module[0].weight.is_global
    x = torch.ones(3, 4)
    assert not model(x).is_global
    assert torch.allclose(torch.nn.parallel.data_parallel(single.eval(), x), single(x), atol=TOLERANCE)
    few = torch.nn.DataParallel(build(), device_ids=[0, 1])
    few(torch.ones(3, 4))
    assert few._placement() == flow.placement("cpu", [0, 1])


def test_inputs_are_scattered_and_results_gathered(torch):
    from torch.nn.parallel.scatter_gather import gather, scatter, scatter_kwargs

    x = torch.arange(6.0).reshape(3, 2)
    parts = scatter({"x": [x, 3], "pair": Pair(x, "k")}, [0, 1])
    assert [p["x"][0].shape[0] for p in parts] == [2, 1] and parts[1]["x"][1] == 3 and parts[1]["pair"].k == "k"
    rows, names = scatter_kwargs((x,), {"y": x}, [0, 1])
    assert len(rows) == len(names) == 2 and names[1]["y"].tolist() == [[4.0, 5.0]]
    assert gather([p["x"][0] for p in parts], "cpu").tolist() == x.tolist()
    joined = gather([{"a": x, "b": x.sum()}] * 2, "cpu")
    assert joined["a"].shape == (6, 2) and joined["b"].shape == (2,)
    model = torch.nn.Linear(2, 1)
    outs = torch.nn.parallel.parallel_apply(torch.nn.parallel.replicate(model, [0, 1]), rows)
    assert torch.allclose(torch.cat(outs), model(x))


def test_futures_chain_and_collect(either):
    futures = either.futures
    one, two = futures.Future(), futures.Future()
    doubled = one.then(lambda done: 2 * done.value())
    failed = two.then(lambda done: 1 / 0)
    every = futures.collect_all([one, two])
    assert not every.done()
    one.set_result(3)
    two.set_result(4)
    assert doubled.wait() == 6 and [f.wait() for f in every.wait()] == [3, 4]
    assert futures.wait_all([one, two]) == [3, 4]
    with pytest.raises((ZeroDivisionError, RuntimeError)):
        failed.wait()


def test_a_variable_is_a_tensor(either):
    x = either.ones(2)
    v = either.autograd.Variable(x, requires_grad=True)
    assert isinstance(v, either.Tensor) and v.requires_grad and isinstance(x, either.autograd.Variable)
    assert not either.autograd.Variable(x).requires_grad and not x.requires_grad


def test_a_statement_is_timed(torch):
    from torch.utils import benchmark

    timer = benchmark.Timer("x @ x", "y = x + 1", globals={"x": torch.ones(16, 16)}, label="product")
    found = timer.blocked_autorange(min_run_time=0.01)
    assert found.median > 0 and found.mean > 0 and len(found.times) >= 1 and timer.timeit(3).number_per_run == 3
    table = str(benchmark.Compare([found, found]))
    assert table.count("product") == 2 and table.endswith("us")


def test_the_older_profiler_has_a_switch(torch):
    profiler = torch.autograd.profiler
    with profiler.profile(enabled=False) as none, profiler.record_function("part"), profiler.emit_nvtx():
        torch.ones(2) + 1
    assert isinstance(none, torch.profiler.profile) and issubclass(profiler.EventList, list)
    with pytest.raises(NotImplementedError, match="nvprof"):
        profiler.load_nvprof("x")


def test_a_writer_takes_tensors(torch, tmp_path):
    pytest.importorskip("tensorboardX", reason="torch.utils.tensorboard is the writer of tensorboardX")
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("loss", torch.tensor(1.5), 1)
        writer.add_scalars("both", {"a": torch.tensor(1.0), "b": 2.0}, 1)
        writer.add_histogram("weights", torch.ones(4), 1)
        writer.add_image("image", torch.zeros(3, 4, 4), 1)
        with pytest.raises(NotImplementedError, match="visualize"):
            writer.add_graph(torch.nn.Linear(1, 1))
    assert next(tmp_path.iterdir()).stat().st_size > 100


def test_a_trace_of_functions_is_refused_in_words(torch):
    with pytest.raises(NotImplementedError, match="programs are jaxprs"):
        torch.fx.symbolic_trace(torch.nn.Linear(1, 1))


def test_an_iterator_of_pytorch_goes_over_a_loader_of_another_class(torch):
    from torch.utils.data.dataloader import _SingleProcessDataLoaderIter

    class Loader:
        dataset, _index_sampler, _auto_collation, collate_fn = [1, 2, 3], [[2, 0], [1]], True, sum

    class Stream(Loader):
        dataset, collate_fn = {4, 5}, float

    assert list(_SingleProcessDataLoaderIter(Loader)) == [4, 2] and list(_SingleProcessDataLoaderIter(Stream)) == [4, 5]
    assert list(_SingleProcessDataLoaderIter(torch.utils.data.DataLoader([1, 2]))) == [1, 2]


def test_a_context_manager_decorates_with_a_copy_per_call(torch):
    from torch.utils._contextlib import _DecoratorContextManager, _NoParamDecoratorContextManager

    entered = []

    class mode(_DecoratorContextManager):
        def __init__(self, name):
            self.name = name

        def clone(self):
            return mode(self.name)

        def __enter__(self):
            entered.append((self.name, id(self)))

        def __exit__(self, *error):
            pass

    class plain(_NoParamDecoratorContextManager, mode):
        def __init__(self):
            super().__init__("plain")

        def clone(self):
            return plain()

    kept = mode("x")
    assert kept(abs)(-1) == 1 and plain(abs)(-2) == 2
    assert [name for name, _ in entered] == ["x", "plain"] and entered[0][1] != id(kept)


def test_lists_of_tensors_are_grouped_by_device_and_dtype(torch):
    from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype, _has_foreach_support

    x, y, z = torch.ones(1), torch.ones(2, dtype=torch.float64), torch.ones(3)
    groups = _group_tensors_by_device_and_dtype([[x, y, z], [], [1, 2, 3]], with_indices=True)
    (first, places), (second, others) = groups.values()
    assert first[0][0] is x and first[0][1] is z and first[1:] == [[], [1, 3]] and places == [0, 2]
    assert second[0][0] is y and second[1:] == [[], [2]] and others == [1]
    assert _has_foreach_support([x], x.device) and not _has_foreach_support([3], x.device)


def test_pieces_that_libraries_import(torch):
    from torch._tensor_str import PRINT_OPTS
    from torch.distributed.rpc.api import _require_initialized
    from torch.utils.data._utils.collate import default_collate
    from torch.utils.data.dataloader import _BaseDataLoaderIter, _MultiProcessingDataLoaderIter
    from torch.utils.flop_counter import FlopCounterMode

    assert default_collate([1, 2]).tolist() == [1, 2] and PRINT_OPTS.edgeitems == 3
    batches = iter(torch.utils.data.DataLoader([1, 2]))
    assert isinstance(batches, _BaseDataLoaderIter) and not isinstance(batches, _MultiProcessingDataLoaderIter)
    assert _require_initialized(len) is len and "jax" in torch.__config__.show().lower()
    with FlopCounterMode(display=False) as counter:
        torch.ones(2, 2) @ torch.ones(2, 2)
    assert counter.get_total_flops() == 0
    device, dtype, non_blocking, form = torch._C._nn._parse_to("cpu", torch.float64)
    assert device == torch.device("cpu") and dtype is torch.float64 and non_blocking is False and form is None
    assert torch.distributed.ReduceOp.SUM.name == "SUM" and isinstance(
        torch.distributed.ReduceOp.SUM, torch.distributed.ReduceOp.RedOpType
    )
    with pytest.raises(NotImplementedError, match="parametrize"):
        torch.nn.utils.prune.l1_unstructured(torch.nn.Linear(1, 1), "weight", 1)
    assert isinstance(torch.ops.aten._no_such_op.default, object)
    with pytest.raises(NotImplementedError, match="implementations for nothing"):
        torch.ops.aten._no_such_op(torch.ones(1))


def test_private_names_that_libraries_import(torch):
    from torch.cuda import _lazy_call, comm
    from torch.distributed.distributed_c10d import _get_global_rank
    from torch.utils.checkpoint import detach_variable

    x = torch.ones(2, requires_grad=True)
    found, other = detach_variable((x * 2, 3))
    assert found.is_leaf and found.requires_grad and other == 3
    called = []
    _lazy_call(lambda: called.append(1))
    assert called == [1] and len(comm.scatter(x, [0, 1])) == 2 and _get_global_rank(None, 0) == 0


class _Centred:
    """Rows that a module maps, as torchvision's transforms do."""

    def __init__(self, module):
        self.module = module

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.module(flow.full((2,), float(index)))


def test_a_dataset_that_holds_modules_is_read_in_this_process(torch):
    loader = torch.utils.data.DataLoader(_Centred(torch.nn.Identity()), batch_size=2, num_workers=2)
    with pytest.warns(UserWarning, match="made in this process"):
        found = [batch.tolist() for batch in loader]
    assert found == [[[0.0, 0.0], [1.0, 1.0]], [[2.0, 2.0], [3.0, 3.0]]] and len(list(loader)) == 2


def test_under_the_own_name_a_dataset_that_holds_modules_has_no_workers():
    loader = flow.utils.data.DataLoader(_Centred(flow.nn.Identity()), batch_size=2, num_workers=2)
    with pytest.raises(flow.errors.WorkerModuleError, match="workers have no JAX"):
        list(loader)
