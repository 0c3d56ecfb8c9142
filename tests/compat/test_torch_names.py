"""Names of PyTorch that sbpjax has none of its own for: what they do, against PyTorch where it can be compared."""

import functools
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
from sbpjax._core.compat.alias import Alias
from tests.support import compare

close = functools.partial(compare.close, rtol=1e-5, atol=1e-5)

STATE = {"weight": [[1.0, 2.0], [3.0, 4.0]]}


@pytest.fixture
def torch():
    with mock_torch.enable():
        yield importlib.import_module("torch")


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

    assert _BatchNorm is sbpjax.nn.layers.batchnorm._BatchNorm and torch.torch.Tensor is torch.Tensor
    keys = torch.nn.Linear(1, 1).load_state_dict({}, strict=False)
    assert isinstance(keys, _IncompatibleKeys)


def test_foreach(torch):
    rng = np.random.default_rng(0)
    arrays = [[rng.uniform(0.5, 1.5, (2, 3)).astype(np.float32) for _ in range(2)] for _ in range(3)]

    def calls(torch):
        a, b, c = ([torch.tensor(x) for x in xs] for xs in arrays)
        yield torch._foreach_add(a, b, alpha=2)
        yield torch._foreach_add(a, 1.5)
        yield torch._foreach_mul(a, torch.tensor(3.0))
        yield torch._foreach_lerp(a, b, 0.25)
        torch._foreach_mul_(a, 2)
        torch._foreach_add_(a, b, alpha=-0.1)
        torch._foreach_lerp_(a, b, weight=0.5)
        yield a
        torch._foreach_copy_(a, c)
        yield a
        torch._foreach_addcmul_(a, b, c, value=0.5)
        torch._foreach_addcdiv_(a, b, c, [1.0, 2.0])
        torch._foreach_sub_(a, b, alpha=0.3)
        torch._foreach_div_(a, [2.0, 3.0])
        torch._foreach_sqrt_(a)
        yield a
        yield torch._foreach_norm(a, 2)
        yield torch._foreach_maximum(a, 1.0)
        torch._foreach_zero_(a)
        yield a

    for ours, theirs in zip(calls(torch), calls(real), strict=True):
        for x, y in zip(ours, theirs, strict=True):
            close(x, y)
    assert not hasattr(torch, "_foreach_nothing")


def test_fans(torch):
    from torch.nn import init

    assert init._calculate_fan_in_and_fan_out(torch.zeros(6, 4, 3, 3)) == (36, 54)
    assert init.xavier_uniform_ is sbpjax.nn.init.xavier_uniform_


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
    with pytest.raises(NotImplementedError, match="checkpoint the parts"):
        c.create_selective_checkpoint_contexts([])


def test_hooks_of_every_optimizer(torch):
    from torch.optim import optimizer as o

    messages = []
    before = o.register_optimizer_step_pre_hook(lambda opt, args, kwargs: messages.append("before"))
    after = o.register_optimizer_step_post_hook(lambda opt, args, kwargs: messages.append("after"))
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    try:
        optimizer.step()
    finally:
        before.remove()
        after.remove()
    optimizer.step()
    assert messages == ["before", "after"]


def test_an_optimizer_written_for_pytorch(torch):
    from torch.optim.optimizer import Optimizer, required

    class Signs(Optimizer):
        def __init__(self, params, lr=required):
            super().__init__(params, {"lr": lr, "differentiable": False})

        @torch.no_grad()
        def step(self, closure=None):
            assert not torch.is_grad_enabled()
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad.sign(), alpha=-group["lr"])

    weight = torch.nn.Parameter(torch.tensor([1.0, -1.0]))
    (weight**2).sum().backward()
    Signs([weight], lr=0.5).step()
    assert weight.tolist() == [0.5, -0.5]


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


def test_trees(torch):
    from torch.utils import _pytree as t

    tree = {"a": [1, None], "b": (2, 3)}
    leaves, spec = t.tree_flatten(tree)
    assert leaves == t.tree_leaves(tree) == [1, None, 2, 3] and t.tree_unflatten(leaves, spec) == tree
    assert t.tree_map_only(int, lambda x: -x, tree) == {"a": [-1, None], "b": (-2, -3)}


def test_masked_reductions(torch):
    x, mask = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([[True, False, True], [True, True, True]])
    names = "sum prod mean amax amin argmax argmin std logsumexp softmax log_softmax softmin cumsum cumprod median norm"
    for name, options in (
        *((name, {"dim": 1}) for name in names.split()),
        *((name, {}) for name in ("sum", "prod", "mean", "amax", "std", "logsumexp", "norm", "argmin")),
        ("var", {"dim": 1, "unbiased": True}),
        ("var", {"dim": 0, "correction": 0, "keepdim": True}),
        ("norm", {"ord": -float("inf"), "dim": 1}),
        ("normalize", {"ord": 2.0, "dim": 1}),
        ("prod", {"dim": (0, 1), "keepdim": True}),
    ):
        for values in (x, x.astype(np.int64)) if name in ("sum", "prod", "amax", "argmax", "std") else (x,):
            ours = getattr(torch.masked, name)(torch.tensor(values), mask=torch.tensor(mask), **options)
            with mock_torch.disable():  # PyTorch imports itself while it runs
                theirs = getattr(real.masked, name)(real.tensor(values), mask=real.tensor(mask), **options)
            assert str(ours.dtype) == str(theirs.dtype), name
            close(ours, theirs)


def test_masked_variance_of_complex_numbers_is_real_and_logaddexp_has_two_masks(torch):
    x = (np.arange(6) - 2 + 1j * np.arange(6) ** 2).reshape(2, 3).astype(np.complex64)
    mask = np.array([[True, False, True], [True, True, True]])
    for name in ("var", "std"):
        ours = getattr(torch.masked, name)(torch.tensor(x), 1, mask=torch.tensor(mask))
        with mock_torch.disable():
            theirs = getattr(real.masked, name)(real.tensor(x), 1, mask=real.tensor(mask)).real
        close(ours.real, theirs)

    def of(t):
        given = {"input_mask": t.tensor(mask), "other_mask": t.tensor(~mask)}
        return t.masked.logaddexp(t.tensor(x.real), t.tensor(x.imag), **given)

    with mock_torch.disable():
        theirs = of(real)
    close(of(torch), theirs)


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
    "torch.sparse_csc_tensor torch.sparse.spsolve torch.nested.nested_tensor torch.UntypedStorage torch.onnx.export "
    "torch.ao.quantization.ObserverBase torch.distributed.rpc.rpc_async torch.distributed.fsdp.StateDictType.SHARDED "
    "torch.export.export torch._subclasses.FakeTensor "
    "torch.uint3".split(),
)
def test_absent_names_are_no_type_of_anything_and_say_why(torch, name):
    head, _, rest = name.partition(".")
    found = torch
    for part in rest.split("."):
        found = getattr(found, part)
    assert not isinstance(torch.ones(1), found)
    with pytest.raises(NotImplementedError, match="fix:"):
        found(1)


def test_the_bytes_of_a_file_become_tensors(torch, tmp_path):
    values = np.arange(6, dtype=np.float32)
    (tmp_path / "file").write_bytes(b"head" + values.tobytes())
    found = torch.UntypedStorage.from_file(tmp_path / "file", shared=False, nbytes=28).untyped()
    assert (len(found), found.nbytes(), found[0]) == (28, 28, ord("h")) and isinstance(found, torch.UntypedStorage)
    assert torch.asarray(found[4:28], dtype=torch.uint8).view(dtype=torch.float32).tolist() == values.tolist()
    with pytest.raises(NotImplementedError, match="read only"):
        torch.UntypedStorage.from_file(tmp_path / "file", shared=True, nbytes=28)
    x = torch.zeros(2)
    assert isinstance(x.untyped_storage(), torch.UntypedStorage) and not isinstance(x.storage(), torch.UntypedStorage)


def test_tensors_are_strided(torch):
    x = torch.zeros(4)
    spread = x.to_global(sbpjax.placement("cpu", [0, 1]), sbpjax.sbp.split(0))
    for layout in (x.layout, spread.layout, torch.strided):
        assert layout == torch.strided and not layout != torch.strided and layout != torch.sparse_coo
    assert torch.strided != torch.sparse_coo and hash(torch.strided) == hash(torch.strided)


def test_small_names(torch):
    from torch.distributed import distributed_c10d, group

    with pytest.raises(ValueError, match="no"):
        torch._check_with(ValueError, False, lambda: "no")
    with pytest.raises(RuntimeError):
        torch._assert_async(torch.tensor(False))
    assert torch._shape_as_tensor(torch.ones(2, 3)).tolist() == [2, 3]
    torch.testing.assert_allclose(torch.ones(2), np.ones(2))
    with pytest.raises(AssertionError):
        torch.testing.assert_allclose(torch.ones(2), torch.zeros(2))
    assert group.WORLD is None and torch.distributed.Backend("NCCL") == "nccl"
    assert distributed_c10d._get_default_group().size() == 1 and torch.distributed.get_global_rank(None, 0) == 0
    assert torch.jit.annotations.List[int]
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
    from sbpjax._core.compat.torch_names import multiprocessing as m

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


def test_types_of_containers_are_checked(torch):
    check, tensors = torch.jit.isinstance, [torch.ones(1)]
    assert check(tensors, list[torch.Tensor]) and not check(tensors, list[int]) and not check((1,), list[int])
    assert check({"a": [1]}, dict[str, list[int]]) and not check({"a": ["b"]}, dict[str, list[int]])
    assert check((1, "a"), tuple[int, str]) and not check((1,), tuple[int, str]) and check((1, 2, 3), tuple[int, ...])
    assert check(None, int | None) and check(3, (str, int)) and not check("a", int | None)
    assert isinstance(torch.version.git_version, str)  # torchao asks for it


def test_points_of_sobol_are_those_of_pytorch(torch):
    engine = torch.quasirandom.SobolEngine(2)
    assert engine.draw(4).tolist() == [[0, 0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75]]
    assert engine.num_generated == 4 and engine.reset().fast_forward(2).draw().tolist() == [[0.75, 0.25]]
    scrambled = [torch.quasirandom.SobolEngine(3, scramble=True, seed=5) for _ in range(2)]
    first, second = (one.draw_base2(3, dtype=torch.float64) for one in scrambled)
    assert first.dtype == torch.float64 and first.tolist() == second.tolist() and first.shape == (8, 3)
