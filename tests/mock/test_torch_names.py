"""Names of PyTorch that sbpjax has none of its own for: what they do, against PyTorch where it can be compared."""

import importlib
import math
import os
import pickle
import sys
import weakref

import numpy as np
import pytest
import torch as real

import sbpjax
from sbpjax import mock_oneflow, mock_torch, nn
from sbpjax.mock import Alias

STATE = {"weight": [[1.0, 2.0], [3.0, 4.0]]}


@pytest.fixture
def torch():
    with mock_torch.enable():
        yield importlib.import_module("torch")


def close(ours, theirs, tolerance=1e-5):
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=tolerance, atol=tolerance)


def kinds(modules, layers):
    """Return which layers are of which private base class, by both names."""
    found = {}
    for module, names in modules.items():
        place = importlib.import_module(f"torch.nn.modules.{module}")
        for name in names.split():
            base = getattr(place, name)
            found[f"{module}.{name}"] = [layer for layer, made in layers.items() if isinstance(made, base)]
    return found


def layers_of(nn):
    made = {
        f"{kind}{n}d": getattr(nn, f"{kind}{n}d")(2)
        for n in (1, 2, 3)
        for kind in (
            "BatchNorm InstanceNorm AvgPool MaxPool AdaptiveAvgPool AdaptiveMaxPool ReflectionPad ReplicationPad "
            "ZeroPad CircularPad MaxUnpool LazyBatchNorm LazyInstanceNorm"
        ).split()
    }
    made |= {
        f"{kind}{n}d": getattr(nn, f"{kind}{n}d")(2, 2, 1) for n in (1, 2, 3) for kind in ("Conv", "ConvTranspose")
    }
    made |= {f"Dropout{n}d": getattr(nn, f"Dropout{n}d")(0.5) for n in (1, 2, 3)}
    made |= {f"LPPool{n}d": getattr(nn, f"LPPool{n}d")(2, 2) for n in (1, 2, 3)}
    made |= {f"ConstantPad{n}d": getattr(nn, f"ConstantPad{n}d")(2, 0.5) for n in (1, 2, 3)}
    losses = "MSELoss CrossEntropyLoss NLLLoss BCELoss BCEWithLogitsLoss KLDivLoss MultiMarginLoss L1Loss"
    return made | {name: getattr(nn, name)() for name in losses.split()} | {"SyncBatchNorm": nn.SyncBatchNorm(2)}


BASES = {
    "batchnorm": "_NormBase _BatchNorm _LazyNormBase BatchNorm2d SyncBatchNorm",
    "instancenorm": "_InstanceNorm",
    "conv": "_ConvNd _ConvTransposeNd",
    "pooling": "_MaxPoolNd _MaxUnpoolNd _AvgPoolNd _AdaptiveAvgPoolNd _AdaptiveMaxPoolNd _LPPoolNd AvgPool2d MaxPool2d",
    "padding": "_ConstantPadNd _ReflectionPadNd _ReplicationPadNd _CircularPadNd ConstantPad2d",
    "dropout": "_DropoutNd",
    "lazy": "LazyModuleMixin",
    "loss": "_Loss _WeightedLoss",
}


def test_layers_are_of_the_private_base_classes_of_pytorch():
    theirs = kinds(BASES, layers_of(real.nn))
    with mock_torch.enable():
        ours = kinds(BASES, layers_of(nn))
    assert ours == theirs


def test_modules_show_what_lies_at_their_place_first(torch):
    from torch.nn.modules.batchnorm import _BatchNorm
    from torch.nn.modules.module import _IncompatibleKeys

    assert _BatchNorm is sbpjax.nn.batchnorm._BatchNorm and torch.torch.Tensor is torch.Tensor
    keys = torch.nn.Linear(1, 1).load_state_dict({}, strict=False)
    assert isinstance(keys, _IncompatibleKeys)


def test_a_variable_is_a_tensor(torch):
    from torch.autograd import Variable

    x = torch.ones(2)
    assert isinstance(x, Variable) and not isinstance(1, Variable) and Variable(x) is x
    y = Variable(x, requires_grad=True)
    assert y.requires_grad and not x.requires_grad and y.data_ptr() == x.data_ptr()


def test_foreach(torch):
    rng = np.random.default_rng(0)
    arrays = [[rng.uniform(0.5, 1.5, (2, 3)).astype(np.float32) for _ in range(2)] for _ in range(3)]

    def calls(torch):
        a, b, c = ([torch.tensor(x) for x in xs] for xs in arrays)
        yield torch._foreach_add(a, b, alpha=2)
        yield torch._foreach_add(a, 1.5)
        yield torch._foreach_sub(a, [1.0, 2.0])
        yield torch._foreach_mul(a, torch.tensor(3.0))
        yield torch._foreach_div(a, b)
        yield torch._foreach_pow(a, 2)
        yield torch._foreach_pow(2.0, a)
        yield torch._foreach_maximum(a, 1.0)
        yield torch._foreach_minimum(a, b)
        yield torch._foreach_lerp(a, b, 0.25)
        yield torch._foreach_addcmul(a, b, c, value=0.5)
        yield torch._foreach_addcdiv(a, b, c, [0.5, 2.0])
        yield torch._foreach_norm(a)
        for name in "sqrt neg exp reciprocal sign abs".split():
            yield getattr(torch, f"_foreach_{name}")(a)
        torch._foreach_mul_(a, 2)
        torch._foreach_addcdiv_(a, b, c, value=-0.1)
        torch._foreach_lerp_(a, b, weight=0.5)
        yield a
        torch._foreach_copy_(a, c)
        yield a
        torch._foreach_zero_(a)
        yield a

    for ours, theirs in zip(calls(torch), calls(real), strict=True):
        for x, y in zip(ours, theirs, strict=True):
            close(x, y)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_gradients_of_convolutions(torch, dims):
    from torch.nn import grad

    rng = np.random.default_rng(dims)
    x = rng.normal(size=(2, 4, *[5] * dims)).astype(np.float32)
    w = rng.normal(size=(6, 2, *[3] * dims)).astype(np.float32)
    options = {"stride": 2, "padding": 1, "groups": 2}
    conv = getattr(real.nn.functional, f"conv{dims}d")
    g = rng.normal(size=conv(real.tensor(x), real.tensor(w), **options).shape).astype(np.float32)
    for ends, args in (("input", (x.shape, w, g)), ("weight", (x, w.shape, g))):
        name = f"conv{dims}d_{ends}"
        theirs = getattr(real.nn.grad, name)(
            *(real.tensor(a) if isinstance(a, np.ndarray) else a for a in args), **options
        )
        ours = getattr(grad, name)(*(torch.tensor(a) if isinstance(a, np.ndarray) else a for a in args), **options)
        close(ours, theirs, 1e-4)


def test_fans_and_reductions(torch):
    from torch.nn import _reduction, init

    w = torch.zeros(6, 4, 3, 3)
    assert init._calculate_fan_in_and_fan_out(w) == (36, 54)
    assert init._calculate_correct_fan(w, "FAN_OUT") == 54
    init._no_grad_fill_(w, 2.0)
    assert w.mean() == 2 and init.xavier_uniform_ is sbpjax.nn.init.xavier_uniform_
    assert [_reduction.get_enum(r) for r in ("none", "mean", "sum")] == [0, 1, 2]
    for old in ((None, None), (False, None), (None, False), (True, True)):
        assert _reduction.legacy_get_string(*old) == real.nn._reduction.legacy_get_string(*old, emit_warning=False)


def test_projections_and_masks_of_attention(torch):
    rng = np.random.default_rng(0)
    q, k = (rng.normal(size=(3, 2, 4)).astype(np.float32) for _ in range(2))
    w, b = rng.normal(size=(12, 4)).astype(np.float32), rng.normal(size=12).astype(np.float32)
    for args in ((q, q, q), (q, k, k), (q, k, q)):
        found = []
        for lib in (torch, real):
            made = {id(a): lib.tensor(a) for a in args}
            found.append(
                lib.nn.functional._in_projection_packed(*(made[id(a)] for a in args), lib.tensor(w), lib.tensor(b))
            )
        for x, y in zip(*found, strict=True):
            close(x, y)
    mask = torch.nn.functional._canonical_mask(torch.tensor([True, False]), "mask", None, "", torch.float32)
    assert mask.tolist() == [float("-inf"), 0]


def test_dual_numbers(torch):
    from torch.autograd import forward_ad

    x, t = np.array([0.5, 1.5], np.float32), np.array([1.0, -2.0], np.float32)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.tensor(x), torch.tensor(t))
        assert forward_ad.unpack_dual(torch.ones(1)).tangent is None
        assert forward_ad.unpack_dual(dual).tangent.tolist() == t.tolist()
        primal, tangent = forward_ad.unpack_dual((dual * dual).sin())
    np.testing.assert_allclose(primal.detach().numpy(), np.sin(x * x), rtol=1e-5)
    np.testing.assert_allclose(tangent.detach().numpy(), np.cos(x * x) * 2 * x * t, rtol=1e-5)


def test_checkpoints(torch):
    from torch.utils import checkpoint as c

    runs = []

    class Counted:
        def __enter__(self):
            runs.append(self)

        def __exit__(self, *exc):
            pass

    layer, first, second = torch.nn.Linear(2, 2), Counted(), Counted()
    x = torch.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    wanted, x.grad = x.grad.clone(), None
    options = {"use_reentrant": False, "context_fn": lambda: (first, second), "determinism_check": "none"}
    c.checkpoint(layer, x, **options).sum().backward()
    assert runs == [first, second]
    close(x.grad, wanted)
    x.grad = None
    c.CheckpointFunction.apply(layer, True, x).sum().backward()
    close(x.grad, wanted)
    (leaf,) = c.detach_variable((layer(x),))
    assert leaf.is_leaf and leaf.requires_grad
    devices, states = c.get_device_states(x)
    drawn = torch.rand(3)
    c.set_device_states(devices, states)
    assert torch.rand(3).tolist() == drawn.tolist()
    with pytest.raises(NotImplementedError, match="checkpoint the parts"):
        c.create_selective_checkpoint_contexts([])


def test_hooks_of_every_optimizer(torch):
    from torch.optim import optimizer as o

    said = []
    before = o.register_optimizer_step_pre_hook(lambda opt, args, kwargs: said.append("before"))
    after = o.register_optimizer_step_post_hook(lambda opt, args, kwargs: said.append("after"))
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    try:
        optimizer.step()
    finally:
        before.remove()
        after.remove()
    optimizer.step()
    assert said == ["before", "after"]


def test_an_optimizer_written_for_pytorch(torch):
    from torch.optim.optimizer import Optimizer, _use_grad_for_differentiable, required

    class Signs(Optimizer):
        def __init__(self, params, lr=required):
            super().__init__(params, {"lr": lr, "differentiable": False})

        @_use_grad_for_differentiable
        def step(self, closure=None):
            assert not torch.is_grad_enabled()
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad.sign(), alpha=-group["lr"])

    weight = torch.nn.Parameter(torch.tensor([1.0, -1.0]))
    (weight**2).sum().backward()
    Signs([weight], lr=0.5).step()
    assert weight.tolist() == [0.5, -0.5]


def test_swapped_tensors(torch):
    weight, other = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.zeros(3), requires_grad=False)
    weight.grad = torch.full((2,), 5.0)
    held = weakref.ref(weight)
    torch.utils.swap_tensors(weight, other)
    assert held() is weight and weight.shape == (3,) and other.tolist() == [1, 1] and other.grad.tolist() == [5, 5]
    assert other.requires_grad and not weight.requires_grad and weight.grad is None
    (other * 2).sum().backward()
    assert other.grad.tolist() == [7, 7]


def test_parallel_modules_of_one_process(torch):
    from torch.nn import parallel as p

    x = torch.arange(6.0).reshape(3, 2)
    parts, options = p.scatter_kwargs((x, "same"), {"y": [x]}, [0, 1])
    assert [tuple(part[0].shape) for part in parts] == [(2, 2), (1, 2)] and parts[1][1] == "same"
    assert tuple(options[1]["y"][0].shape) == (1, 2)
    layer = torch.nn.Linear(2, 2)
    outs = p.parallel_apply(p.replicate(layer, [0, 1]), [part[0] for part in parts])
    close(p.gather(outs, 0), layer(x))
    close(p.data_parallel(layer, x, [0, 1]), layer(x))
    assert p.gather([x.sum(), x.sum()], 0).tolist() == [15, 15]
    assert isinstance(p.DataParallel(layer), torch.nn.DataParallel)


def test_files_with_classes_that_are_allowed(torch, tmp_path):
    path = tmp_path / "x.pt"
    torch.save({"x": torch.ones(2), "kind": Alias, "w": weakref.ref}, path)
    with pytest.raises(RuntimeError):
        torch.load(path)
    assert torch.serialization.get_unsafe_globals_in_checkpoint(path) == [
        f"{Alias.__module__}.Alias",
        "weakref.ReferenceType",
    ]
    with torch.serialization.safe_globals([Alias, (weakref.ref, "weakref.ReferenceType")]):
        found = torch.load(path)
        assert len(torch.serialization.get_safe_globals()) == 2
    assert found["kind"] is Alias and found["x"].tolist() == [1, 1] and torch.serialization.get_safe_globals() == []


def test_timers(torch):
    from torch.utils.benchmark import Compare, Timer

    timer = Timer("x @ x", globals={"x": torch.ones(4, 4)}, label="product", sub_label="4")
    found = timer.blocked_autorange(min_run_time=0.02)
    assert 0 < found.median < 1 and found.number_per_run >= 1 and "product: 4" in repr(found)
    assert timer.timeit(3).number_per_run == 3 and "product: 4" in str(Compare([found]))


def test_batches_by_a_table(torch):
    from torch.utils.data._utils.collate import collate, default_collate_fn_map

    class Box:
        def __init__(self, value):
            self.value = value

    table = {**default_collate_fn_map, Box: lambda batch, collate_fn_map=None: [box.value for box in batch]}
    batch = collate([{"x": 1.0, "b": Box(2)}, {"x": 3.0, "b": Box(4)}], collate_fn_map=table)
    assert batch["x"].tolist() == [1, 3] and batch["b"] == [2, 4]


def test_iterators_of_loaders(torch):
    from torch.utils.data import DataLoader, dataloader

    it = iter(DataLoader([1, 2, 3]))
    assert isinstance(it, dataloader._BaseDataLoaderIter) and isinstance(it, dataloader._SingleProcessDataLoaderIter)
    assert not isinstance(it, dataloader._MultiProcessingDataLoaderIter)


def test_trees(torch):
    from torch.utils import _pytree as t

    tree = {"a": [1, None], "b": (2, 3)}
    assert t.tree_leaves(tree) == [1, None, 2, 3] == list(t.tree_iter(tree))
    paths = t.tree_leaves_with_path(tree)
    assert [t.key_get(tree, path) for path, _ in paths] == [1, None, 2, 3]
    assert t.keystr(paths[2][0]) == "['b'][0]" and t.tree_is_leaf(3) and not t.tree_is_leaf(tree)
    assert t.tree_any_only(int, lambda x: x > 2, tree) and t.arg_tree_leaves(1, x=[2]) == [1, 2]


def test_masked_reductions(torch):
    x, mask = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([[True, False, True], [True, True, True]])
    for name, options in (
        ("sum", {"dim": 1}),
        ("mean", {"dim": 1}),
        ("amax", {"dim": 0}),
        ("var", {"dim": 1, "unbiased": True}),
    ):
        ours = getattr(torch.masked, name)(torch.tensor(x), mask=torch.tensor(mask), **options)
        close(ours, getattr(real.masked, name)(real.tensor(x), mask=real.tensor(mask), **options))


def test_futures(torch):
    a, b = torch.futures.Future(), torch.futures.Future()
    both = torch.futures.collect_all([a, b.then(lambda f: f.wait() + 1)])
    a.set_result(1)
    assert not both.done()
    b.set_result(2)
    assert torch.futures.wait_all(both.wait()) == [1, 3] and torch.futures.Future[int]


def test_kinds_of_device_that_are_not_here(torch):
    for name in ("xpu", "mps", "mtia"):
        module = getattr(torch, name)
        assert not module.is_available() and module.device_count() == 0
        module.empty_cache()
    assert torch.cpu.is_available() and torch.get_device_module("cpu").__name__ == "torch.cpu"
    assert not torch.onnx.is_in_onnx_export() and not torch.distributed.is_mpi_available()
    assert torch.get_autocast_cpu_dtype() is torch.bfloat16 and not torch.is_autocast_cpu_enabled()


@pytest.mark.parametrize(
    "name",
    "torch.sparse_coo_tensor torch.sparse.mm torch.nested.nested_tensor torch.UntypedStorage torch.onnx.export "
    "torch.ao.quantization.ObserverBase torch.distributed.rpc.rpc_async torch.distributed.fsdp.StateDictType.SHARDED "
    "torch.optim.SparseAdam torch.export.export torch._subclasses.FakeTensor "
    "torch.uint3 torch.utils.flop_counter.FlopCounterMode".split(),
)
def test_absent_names_are_no_type_of_anything_and_say_why(torch, name):
    head, _, rest = name.partition(".")
    found = torch
    for part in rest.split("."):
        found = getattr(found, part)
    assert not isinstance(torch.ones(1), found)
    with pytest.raises(NotImplementedError, match="fix:"):
        found(1)


def test_small_names(torch):
    from torch.distributed import distributed_c10d, group

    assert torch.sym_not(False) and torch.sym_ite(True, 1, 2) == 1 and torch.sym_sum([1, 2]) == 3
    with pytest.raises(ValueError, match="no"):
        torch._check_value(False, lambda: "no")
    with pytest.raises(RuntimeError):
        torch._assert_async(torch.tensor(False))
    assert torch._shape_as_tensor(torch.ones(2, 3)).tolist() == [2, 3]
    torch.testing.assert_allclose(torch.ones(2), np.ones(2))
    with pytest.raises(AssertionError):
        torch.testing.assert_allclose(torch.ones(2), torch.zeros(2))
    assert group.WORLD is None and torch.distributed.Backend("NCCL") == "nccl"
    assert distributed_c10d._get_default_group().size() == 1 and torch.distributed.get_global_rank(None, 0) == 0
    assert issubclass(torch.jit.TracerWarning, Warning) and torch.jit.annotations.List[int]
    edge = torch.autograd.graph.get_gradient_edge(torch.ones(1, requires_grad=True) * 2)
    assert edge.output_nr == 0
    with torch.autograd.profiler.profile() as prof, torch.autograd.profiler.record_function("work"):
        pass
    assert "work" in prof.table()
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    torch.autograd.graph.increment_version(y)
    with pytest.raises(RuntimeError):
        y.sum().backward()
    assert torch.hub.get_dir().startswith(torch.hub._get_torch_home())


def test_gradients_clipped_by_a_known_norm():
    found = []
    for lib in (sbpjax, real):
        w = lib.nn.Parameter(lib.tensor([3.0, 4.0]))
        (w**2).sum().backward()
        lib.nn.utils.clip_grads_with_norm_([w], 1.0, lib.nn.utils.get_total_norm([w.grad]))
        found.append(w.grad)
    close(*found)


def test_processes():
    from sbpjax.mock.torch_names import multiprocessing as m

    with pytest.raises(m.ProcessRaisedException, match="ValueError") as caught:
        m.spawn(math.log, (2.0,), nprocs=2)  # of 0 and of 1
    assert caught.value.error_index == 0
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(m.ProcessExitedException, match="exit code") as caught:
        m.spawn(os._exit, nprocs=2)  # with the codes 0 and 1
    assert caught.value.exit_code == 1
    assert m.get_context("spawn") and m.get_sharing_strategy() in m.get_all_sharing_strategies()


def test_oneflow_s_deep_places():
    with mock_oneflow.enable():
        from oneflow._utils import ExceptionWrapper
        from oneflow.multiprocessing import ProcessContext
        from oneflow.nn.graph.graph_config import GraphConfig
        from oneflow.nn.modules.batchnorm import _BatchNorm, _NormBase
        from oneflow.nn.modules.module import _IncompatibleKeys
        from oneflow.utils.data._utils.worker import get_worker_info

        assert issubclass(_BatchNorm, _NormBase) and GraphConfig is sbpjax.graph.config.GraphConfig
        assert get_worker_info() is None and ProcessContext and _IncompatibleKeys
        try:
            raise KeyError("x")
        except KeyError:
            held = ExceptionWrapper(sys.exc_info())
        with pytest.raises(KeyError, match="Caught KeyError"):
            held.reraise()
