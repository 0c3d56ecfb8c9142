"""`torch` and `oneflow` answered by sbpjax: what resolves, what fails and how, and that nothing is left behind."""

import importlib
import importlib.metadata
import subprocess
import sys
import types

import pytest
import torch as real_torch

import sbpjax
from sbpjax import mock_oneflow, mock_torch
from sbpjax._core import naming
from sbpjax._core.compat.alias import Alias

DEEP = """
torch.nn torch.nn.functional torch.nn.init torch.nn.utils torch.nn.modules torch.nn.modules.conv
torch.nn.modules.batchnorm torch.nn.modules.utils torch.nn.parameter torch.nn.common_types torch.optim
torch.optim.optimizer torch.optim.adamw torch.optim.lr_scheduler torch.autograd torch.autograd.function torch.jit
torch.fx torch.fx.proxy torch.version torch.types torch.overrides torch.library torch.compiler torch._dynamo torch._C
torch.utils torch.utils._pytree torch.utils.dlpack torch.nn.attention torch.amp
""".split()


def test_modules_of_oneflow_resolve_too():
    with mock_oneflow.enable():
        import oneflow
        from oneflow.distributions.categorical import Categorical
        from oneflow.nn.common_types import _size_2_t
        from oneflow.nn.modules.utils import _pair
        from oneflow.nn.optimizer.warmup_lr import WarmUpLR

        assert oneflow.version.__version__ == oneflow.__version__ and _pair(2) == (2, 2) and _size_2_t is not None
        assert Categorical is sbpjax.distributions.Categorical and WarmUpLR is sbpjax.optim.lr_scheduler.WarmUpLR


def test_names_print_as_the_alias_s():
    with mock_torch.enable():
        import torch

        assert repr(torch.float32) == "torch.float32" and str(torch.ones(2, 3).shape) == "torch.Size([2, 3])"
        assert repr(torch.ones(1, dtype=torch.float64)) == "tensor([1.], dtype=torch.float64)"
        with mock_oneflow.enable():
            assert (
                repr((sbpjax.sbp.split(0), sbpjax.sbp.broadcast)) == "(oneflow.sbp.split(dim=0), oneflow.sbp.broadcast)"
            )
            assert repr(sbpjax.placement("cpu", [0])) == 'oneflow.placement(type="cpu", ranks=[0])'
        assert repr(torch.int64) == "torch.int64"
    assert repr(sbpjax.float32) == "sbpjax.float32" and repr(sbpjax.Size([2])) == "sbpjax.Size([2])"


def test_names_are_sbpjax_s_own():
    with mock_torch.enable():
        import torch
        import torch.nn.functional as F
        from torch import Tensor, nn

        assert isinstance(torch, Alias) and isinstance(F, types.ModuleType)
        assert Tensor is sbpjax.Tensor and nn.Module is sbpjax.nn.Module and F.gelu is sbpjax.nn.functional.gelu
        assert isinstance(torch.ones(2), torch.Tensor)
        assert torch.nn is nn and torch.nn.functional is F
        assert not hasattr(torch, "no_such_name") and "ones" in dir(torch)
        assert torch.float32 is sbpjax.float32 and torch.get_default_dtype() is torch.float32
    import torch

    assert torch is real_torch


@pytest.mark.parametrize("name", DEEP)
def test_deep_paths_import(name):
    with mock_torch.enable():
        module = importlib.import_module(name)
        assert isinstance(module, Alias) and module.__name__ == name
        real = importlib.import_module(name.replace(".", ".", 1))
        assert real is module
    assert name not in sys.modules or not isinstance(sys.modules[name], Alias)


def test_names_that_libraries_import_from_deep_paths():
    with mock_torch.enable():
        from torch.nn.modules.batchnorm import BatchNorm2d
        from torch.nn.modules.utils import _pair, _reverse_repeat_tuple
        from torch.nn.parameter import Parameter
        from torch.optim.optimizer import Optimizer

        assert BatchNorm2d is sbpjax.nn.BatchNorm2d and Parameter is sbpjax.nn.Parameter
        assert Optimizer is sbpjax.optim.Optimizer
        assert _pair(3) == (3, 3) and _pair([1, 2]) == (1, 2)
        assert _reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)


def test_a_function_keeps_its_name_from_the_module_of_that_name():
    with mock_torch.enable():
        import torch.nn.utils.spectral_norm

        assert torch.nn.utils.spectral_norm is sbpjax.nn.utils.spectral_norm
        assert isinstance(importlib.import_module("torch.nn.utils.spectral_norm"), Alias)


def test_star_import_gives_the_public_names():
    with mock_torch.enable():
        scope = {}
        exec("from torch.nn import *", scope)
        assert scope["Linear"] is sbpjax.nn.Linear and "_C" not in scope


def test_an_unknown_name_is_said_in_full():
    with mock_torch.enable():
        import torch

        with pytest.raises(AttributeError, match=r"torch\.nn\.functional\.no_such_name") as caught:
            torch.nn.functional.no_such_name  # noqa: B018
        assert caught.value.name == "no_such_name"
        with pytest.raises(ImportError, match="no_such_name"):
            exec("from torch.nn import no_such_name")
        with pytest.raises(ModuleNotFoundError, match=r"torch\.no_such_module") as caught:
            importlib.import_module("torch.no_such_module.inner")
        assert caught.value.name == "torch.no_such_module"


def test_lazy_names_fail_when_used():
    with mock_torch.enable(lazy=True):
        import torch
        from torch.no_such_module import thing

        class Derived(torch.no_such_class):
            pass

        assert not isinstance(3, torch.no_such_class) and not torch.no_such_flag
        for use in (torch.no_such_function, thing.inner, Derived):
            with pytest.raises(AttributeError, match="no_such"):
                use()
    with mock_torch.enable():
        import torch

        assert not hasattr(torch, "no_such_function")


def test_lazy_says_what_is_missing(capsys):
    with mock_torch.enable(lazy=True, verbose=True):
        import torch

        torch.no_such_function  # noqa: B018
    assert "torch.no_such_function is missing" in capsys.readouterr().out


def test_versions_compare_and_are_marked():
    installed = importlib.metadata.version("torch")
    with mock_torch.enable():
        import torch

        assert torch.__version__.endswith("+sbpjax") and torch.__version__ == torch.version.__version__
        assert torch.__version__ >= (1, 13) and torch.__version__ >= "1.9.0" and not torch.__version__ < "2.0"
        assert torch.version.cuda is None and torch.version.hip is None
        assert importlib.metadata.version("torch") == torch.__version__
    assert importlib.metadata.version("torch") == installed


def test_the_version_can_be_chosen():
    with mock_torch.enable(mock_version="2.4.0"):
        import torch

        assert torch.__version__ < (2, 5) and importlib.metadata.version("torch") == "2.4.0"
    assert mock_torch.peer.version.startswith("2.13")


def test_the_real_package_is_untouched():
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "torch"}
    with mock_torch.enable():
        import torch.nn

        assert torch.nn is not before["torch.nn"]
        with mock_torch.disable():
            import torch

            assert torch is real_torch
        import torch

        assert torch is not real_torch
    after = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "torch"}
    assert after == before and mock_torch.peer not in sys.meta_path


def test_plain_calls_nest_and_end():
    first, second = mock_torch.enable(), mock_torch.enable()
    first.disable()
    first.disable()
    assert mock_torch.is_enabled()
    second.disable()
    assert not mock_torch.is_enabled() and sys.modules["torch"] is real_torch


def test_a_library_imported_within_stays_within(tmp_path, monkeypatch):
    (tmp_path / "library_of_models.py").write_text("import torch\nfrom torch.nn import Module\n")
    (tmp_path / "library_without.py").write_text("import json\n")
    monkeypatch.syspath_prepend(tmp_path)
    with mock_torch.enable():
        import library_of_models as mocked
        import library_without as plain

        assert mocked.Module is sbpjax.nn.Module
    import library_of_models as real
    import library_without as same

    assert real.Module is real_torch.nn.Module and same is plain
    with mock_torch.enable(packages=["library_of_models"]):
        import library_of_models as again

        assert again is mocked
    assert sys.modules["library_of_models"] is real


def test_patching_reaches_the_module_behind(monkeypatch):
    with mock_torch.enable():
        import torch.nn.functional as F

        before = sbpjax.nn.functional.relu
        F.relu = marker = lambda x: x
        assert sbpjax.nn.functional.relu is marker and F.relu is marker
        F.relu = before
        F.something_new = 1
        assert F.something_new == 1 and not hasattr(sbpjax.nn.functional, "something_new")
        del F.something_new


def test_other_packages_can_be_answered_for():
    with mock_torch.enable(extra_dict={"torch_like": "sbpjax"}):
        import torch_like.nn

        assert torch_like.nn.Linear is sbpjax.nn.Linear
        assert naming.is_torch()  # behaviour follows the peer, not the further package
    assert "torch_like" not in sys.modules


def test_functorch_of_pytorchs_wheel_is_func():
    with mock_torch.enable():
        from functorch import vmap

        assert vmap is sbpjax.func.vmap
        with pytest.raises(ImportError):
            from functorch import dim  # noqa: F401
    assert not isinstance(sys.modules.get("functorch"), Alias)


def test_a_further_package_goes_with_the_alias():
    enabled = mock_torch.enable(extra_dict={"torch_further": "sbpjax.linalg"})
    import torch_further

    assert torch_further.svd is sbpjax.linalg.svd and repr(sbpjax.float32) == "torch.float32"
    with mock_torch.disable():
        assert repr(sbpjax.float32) == "sbpjax.float32" and "functorch" not in sys.modules
        with pytest.raises(ImportError):
            importlib.import_module("torch_further")
    assert repr(sbpjax.float32) == "torch.float32"
    mock_torch.disable()
    assert repr(sbpjax.float32) == "sbpjax.float32" and "torch_further" not in sys.modules
    enabled.disable()


def test_scripts_of_torchscript_and_fx():
    with mock_torch.enable():
        import torch

        assert issubclass(torch.jit.TracerWarning, Warning)

        @torch.jit.script
        def double(x):
            return x * 2

        @torch.jit.ignore()
        def hidden(x):
            return x

        assert not torch.jit.is_scripting() and not torch.jit.is_tracing() and not torch.compiler.is_compiling()
        assert double(torch.ones(2)).tolist() == [2, 2] and hidden(1) == 1
        assert not isinstance(torch.nn.Linear(1, 1), (torch.jit.ScriptModule, torch.jit.RecursiveScriptModule))
        assert issubclass(torch.ScriptModule, torch.nn.Module)
        with pytest.raises(NotImplementedError, match=r"torch\.fx\.GraphModule"):
            torch.fx.symbolic_trace(torch.nn.Linear(1, 1))
        with pytest.raises(NotImplementedError, match="load_graph"):
            torch.jit.load("model.pt")


def test_names_that_are_only_mentioned_say_what_to_use():
    with mock_torch.enable():
        import torch
        from torch.distributed.tensor import DTensor, Replicate, Shard
        from torch.nn.attention.flex_attention import BlockMask

        assert not isinstance(torch.ones(1), (DTensor, BlockMask)) and Shard(0) == Shard(0) != Shard(1)
        assert repr(Replicate()) == "Replicate()" and repr(Shard(1)) == "Shard(dim=1)"
        with pytest.raises(TypeError, match="to_global"):
            DTensor()
        with pytest.raises(NotImplementedError, match="to_global"):
            torch.distributed.pipelining.PipelineStage()
        with pytest.raises(NotImplementedError, match="scaled_dot_product"):
            BlockMask()
        assert torch.accelerator.is_available() == (torch.accelerator.current_accelerator() is not None)
        hint = torch.FloatTensor | None
        assert isinstance(torch.ones(1), torch.FloatTensor) and not isinstance(torch.ones(1), torch.LongTensor)
        assert torch.LongTensor([1, 2]).dtype == torch.int64 and isinstance(None, hint)


def test_oneflow():
    with mock_oneflow.enable():
        import oneflow as flow
        import oneflow.nn.functional as F
        from oneflow.nn.graph import Graph
        from oneflow.utils.global_view import to_local

        assert flow.Tensor is sbpjax.Tensor and flow.sbp.split is sbpjax.sbp.split and Graph is sbpjax.nn.Graph
        assert F.relu is sbpjax.nn.functional.relu and to_local is sbpjax.utils.global_view.to_local
        assert flow._C.matmul(flow.ones(2, 3), flow.ones(4, 3), transpose_b=True).shape == (2, 4)
        with pytest.raises(AttributeError, match=r"oneflow\.no_such_name"):
            flow.no_such_name  # noqa: B018
    assert "oneflow" not in sys.modules


def test_run_a_script(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nimport torch\nimport oneflow\nfrom helper import answer\n"
        "assert __name__ == '__main__' and torch.Tensor is oneflow.Tensor\n"
        "print(torch.__version__, sys.argv[1:], answer)\n"
    )
    (tmp_path / "helper.py").write_text("import torch\nanswer = torch.ones(3).sum().item()\n")
    command = [sys.executable, "-m", "sbpjax.run", "--as", "torch", "--as", "oneflow", str(script), "--as", "x"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == f"{mock_torch.peer.version} ['--as', 'x'] 3.0"
