"""`torch.library` and `torch.ops`: operators of libraries as Python functions, and what cannot be loaded."""

import importlib.util

import numpy as np
import pytest

from sbpjax import mock_torch
from sbpjax._core.compat.torch_alias import peer
from sbpjax.errors import LibraryLoadError, NotInJaxError, UnknownNameError


@pytest.fixture
def torch():
    with mock_torch.enable():
        import torch

        yield torch


def test_custom_op_is_an_operator_with_a_backward(torch):
    @torch.library.custom_op("test_shop::price", mutates_args=())
    def price(x: torch.Tensor, rate: float = 2.0) -> torch.Tensor:
        return x * rate

    @price.register_fake
    def _(x, rate=2.0):
        return torch.empty_like(x)

    x = torch.ones(3, requires_grad=True)
    price(x, 4.0).sum().backward()
    assert x.grad.tolist() == [4.0] * 3  # without a backward of its own: JAX's

    def setup(ctx, inputs, output):
        ctx.rate = inputs[1]

    price.register_autograd(lambda ctx, grad: (grad * ctx.rate * 10, None), setup_context=setup)
    x.grad = None
    out = torch.ops.test_shop.price.default(x)
    out.sum().backward()
    assert out.tolist() == [2.0] * 3 and x.grad.tolist() == [20.0] * 3


def test_library_defines_and_implements(torch):
    lib = torch.library.Library("test_bank", "DEF")
    lib.define("twice(Tensor x) -> Tensor")
    with pytest.raises(NotInJaxError, match="implementations for nothing"):
        torch.ops.test_bank.twice(torch.ones(1))
    lib.impl("twice", lambda x: 1 / 0, "Meta")
    lib.impl("twice", lambda x: x * 2, "CPU")
    assert torch.ops.test_bank.twice(torch.ones(2)).tolist() == [2.0, 2.0]


def test_aten_names_are_public_functions(torch):
    x = torch.tensor([1.0, -2.0])
    assert torch.ops.aten.add.Tensor(x, x).tolist() == [2.0, -4.0]
    assert torch.ops.aten.relu(x).tolist() == [1.0, 0.0]
    torch.testing.assert_close(torch.ops.aten._softmax(x, 0), torch.softmax(x, 0))


def test_missing_operator_is_an_attribute_error(torch):
    assert not hasattr(torch.ops.test_nowhere, "attend")
    with pytest.raises(UnknownNameError, match="no operator test_nowhere::attend is registered"):
        torch.ops.test_nowhere.attend()


def test_compiled_library_cannot_be_loaded(torch):
    with pytest.raises(OSError, match="needs PyTorch's own runtime") as caught:
        torch.ops.load_library("/somewhere/flash_attn/_C.so")
    assert isinstance(caught.value, LibraryLoadError)


def test_library_without_another_way_is_imported_without_its_kernels(torch, tmp_path, monkeypatch):
    (tmp_path / "kernels_first.py").write_text(
        "import torch\n\ndef load():\n    torch.ops.load_library('/somewhere/_kernels.so')\n\nload()\n"
        "FAST = bool(torch.ops.kernels_first.is_fast())\n\ndef fast(x):\n    return torch.ops.kernels_first.fast(x)\n"
    )
    (tmp_path / "kernels_maybe.py").write_text(
        "import torch\ntry:\n    torch.ops.load_library('/somewhere/_kernels.so')\nexcept OSError:\n    FAST = None\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import kernels_first
    import kernels_maybe

    assert kernels_first.FAST is False and kernels_maybe.FAST is None
    with pytest.raises(UnknownNameError, match="no operator kernels_first::fast is registered"):
        kernels_first.fast(torch.ones(1))


def test_libraries_of_kernels_name_what_to_use(torch):
    for name, text in {
        "flash_attn_2_cuda": r"compiled against(.|\n)*scaled_dot_product",
        "xformers.ops": r"compiled against(.|\n)*scaled_dot_product",
        "pyro": r"all of PyTorch's distributions(.|\n)*NumPyro",
        "e3nn": r"graphs of torch.fx(.|\n)*e3nn-jax",
    }.items():
        with pytest.raises(ImportError, match=text):
            peer.find_spec(name)
    assert importlib.util.find_spec("e3nn") is None  # not installed here: a probe is answered, not refused


def test_inferred_schema_defines_an_operator(torch):
    def scaled_sum(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
        return x.sum() * factor

    library = torch.library.Library("test_schemas", "DEF")
    library.define(torch.library.infer_schema(scaled_sum, mutates_args=(), op_name="scaled_sum"))
    library.impl("scaled_sum", scaled_sum, "CompositeExplicitAutograd")
    assert torch.ops.test_schemas.scaled_sum(torch.ones(3)) == 6


def test_operators_of_torchvision_are_ours(torch):
    torch.ops.load_library("/site-packages/torchvision/_C.so")
    boxes = torch.tensor([[0.0, 0, 4, 4], [0, 0, 4, 3.5], [6, 6, 8, 8]])
    kept = torch.ops.torchvision.nms(boxes, torch.tensor([0.5, 0.9, 0.1]), 0.5)
    assert kept.tolist() == [1, 2]
    image = torch.arange(16.0).reshape(1, 1, 4, 4)
    rois = torch.tensor([[0.0, 0, 0, 3, 3]])
    assert torch.ops.torchvision.roi_pool(image, rois, 1.0, 2, 2)[0].flatten().tolist() == [5.0, 7.0, 13.0, 15.0]
    weight, offset = torch.ones(1, 1, 3, 3), torch.zeros(1, 18, 4, 4)
    rest = (1, 1, 1, 1, 1, 1, 1, 1)
    out = torch.ops.torchvision.deform_conv2d(image, weight, offset, torch.zeros(0), torch.zeros(1), *rest, False)
    np.testing.assert_allclose(out.numpy(), torch.nn.functional.conv2d(image, weight, padding=1).numpy(), rtol=1e-6)


def test_position_sensitive_regions_take_their_own_channels(torch):
    image = torch.arange(4.0).reshape(1, 4, 1, 1).expand(1, 4, 8, 8)  # a channel per bin
    out, _ = torch.ops.torchvision.ps_roi_align(image, torch.tensor([[0.0, 1, 1, 6, 6]]), 1.0, 2, 2, 2)
    assert out.flatten().tolist() == [0.0, 1.0, 2.0, 3.0]


def test_dispatch_keys_are_names(torch):
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU) | torch._C.DispatchKeySet("AutocastCUDA")
    assert set(keys) == {"AutocastCPU", "AutocastCUDA"}
    with torch._C._ExcludeDispatchKeyGuard(keys):
        pass


def test_imports_go_past_absent_decorators(torch, tmp_path, monkeypatch):
    (tmp_path / "exporting_library.py").write_text(
        "from torch.onnx.symbolic_helper import parse_args\n"
        "from torch.fx.experimental.symbolic_shapes import free_symbols\n"
        "@parse_args('v', 'f')\n"
        "def export(g, x):\n    return x\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import exporting_library

    with pytest.raises(NotInJaxError, match=r"graph\.export\(path\)"):
        exporting_library.export(None, 1)
    with pytest.raises(NotInJaxError, match=r"torch\.fx"):
        exporting_library.free_symbols(1)
    from torch.utils._python_dispatch import is_traceable_wrapper_subclass

    assert not is_traceable_wrapper_subclass(torch.ones(1))  # asked of every tensor that is saved


def test_an_absent_class_is_no_module():
    with mock_torch.enable():
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("torch.distributions.Wishart")
        assert isinstance(importlib.import_module("torch.distributions").Wishart, type)


def test_filters_of_torchaudio_run_in_one_scan(torch):
    x, a = torch.randn(2, 1, 20), torch.tensor([[0.2, -0.5, 1.0]])
    padded = torch.zeros(2, 1, 22)
    torch.ops.torchaudio._lfilter_core_loop(x, a, padded)
    wanted = np.zeros((2, 1, 22))
    for t in range(20):
        wanted[..., t + 2] = x.numpy()[..., t] - (a.numpy()[0, :2] * wanted[..., t : t + 2]).sum(-1)
    np.testing.assert_allclose(padded.numpy(), wanted, atol=1e-6)
    torch.ops.torchaudio._lfilter_core_loop(x, a[:, 2:], padded[..., :20])
    np.testing.assert_array_equal(padded[..., :20].numpy(), x.numpy())
    assert not torch.ops._torchaudio.is_align_available() and torch.ops._torchaudio.cuda_version() is None
