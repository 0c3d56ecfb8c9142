"""Every public name of `torch.distributions`, and what libraries take of its modules, is there under `mock_torch`."""

import importlib
import inspect
import pkgutil

import torch.distributions as theirs

from sbpjax import distributions as ours
from sbpjax import mock_torch

MODULES = {
    module.name: importlib.import_module(f"torch.distributions.{module.name}").__all__
    for module in pkgutil.iter_modules(theirs.__path__)
}
ASKED_FOR = {
    "utils": ["_standard_normal", "_sum_rightmost", "euler_constant"],
    "multivariate_normal": ["_batch_mahalanobis", "_batch_mv", "_precision_to_scale_tril", "_standard_normal"],
    "transforms": ["_InverseTransform"],
    "constraints": ["_CorrCholesky", "_GreaterThan", "_Interval", "_IndependentConstraint"],
    "kl": ["_KL_REGISTRY"],
}


def test_every_public_name_resolves():
    assert [name for name in theirs.__all__ if not hasattr(ours, name)] == []
    with mock_torch.enable():
        package = importlib.import_module("torch.distributions")
        assert package.Normal is ours.Normal and set(theirs.__all__) <= set(dir(package))
        for module, names in MODULES.items():
            found = importlib.import_module(f"torch.distributions.{module}")
            lacking = [name for name in [*names, *ASKED_FOR.get(module, [])] if not hasattr(found, name)]
            assert lacking == [], module
            assert set(names) <= set(found.__all__)
        from torch.distributions.relaxed_bernoulli import RelaxedBernoulli
        from torch.distributions.transforms import AffineTransform, ComposeTransform

        assert RelaxedBernoulli is ours.RelaxedBernoulli and isinstance(ours.identity_transform, ComposeTransform)
        assert AffineTransform is ours.AffineTransform


def test_members_of_classes():
    """Every public member of PyTorch's classes is one of ours, on the class or of its instances."""
    for name in theirs.__all__:
        other, mine = getattr(theirs, name), getattr(ours, name)
        if isinstance(other, type):
            text = inspect.getsource(mine)
            members = [member for member in dir(other) if not member.startswith("_")]
            assert [m for m in members if not hasattr(mine, m) and f"self.{m}" not in text] == [], name


def test_the_package_can_be_gone_through():
    """Libraries take all classes of distributions from the package's dict."""
    with mock_torch.enable():
        package = importlib.import_module("torch.distributions")
        classes = {name for name in theirs.__all__ if isinstance(getattr(theirs, name), type)}
        assert classes <= set(package.__dict__)
