"""Names of `torch.distributions` under `mock_torch`: those that resolve, and an error for those left out."""

import importlib
import inspect
import pkgutil

import pytest
import torch.distributions as theirs

from sbpjax import distributions as ours
from sbpjax import mock_torch

MODULES = {
    module.name: importlib.import_module(f"torch.distributions.{module.name}").__all__
    for module in pkgutil.iter_modules(theirs.__path__)
}
REQUESTED_FIELDS = {
    "utils": ["_standard_normal", "_sum_rightmost", "euler_constant"],
    "multivariate_normal": ["_batch_mahalanobis", "_batch_mv", "_precision_to_scale_tril", "_standard_normal"],
    "transforms": ["_InverseTransform"],
    "constraints": ["_GreaterThan", "_Interval", "_IndependentConstraint"],
    "kl": ["_KL_REGISTRY"],
}
SHARED = [name for name in theirs.__all__ if hasattr(ours, name)]


def test_modules_resolve_under_the_alias():
    with mock_torch.enable():
        package = importlib.import_module("torch.distributions")
        assert package.Normal is ours.Normal
        for module, names in MODULES.items():
            found = importlib.import_module(f"torch.distributions.{module}")
            wanted = [name for name in names if hasattr(ours, name)] + REQUESTED_FIELDS.get(module, [])
            assert [name for name in wanted if not hasattr(found, name)] == [], module
        from torch.distributions.transforms import AffineTransform, ComposeTransform

        assert AffineTransform is ours.AffineTransform and isinstance(ours.identity_transform, ComposeTransform)


def test_members_of_classes():
    """Every public member of PyTorch's classes is one of ours, on the class or of its instances."""
    for name in SHARED:
        other, mine = getattr(theirs, name), getattr(ours, name)
        if isinstance(other, type):
            text = inspect.getsource(mine)
            members = [member for member in dir(other) if not member.startswith("_")]
            assert [m for m in members if not hasattr(mine, m) and f"self.{m}" not in text] == [], name


def test_the_package_can_be_gone_through():
    """Libraries take all classes of distributions from the package's dict."""
    with mock_torch.enable():
        package = importlib.import_module("torch.distributions")
        assert {name for name in SHARED if isinstance(getattr(theirs, name), type)} <= set(package.__dict__)


def test_distributions_left_out_name_their_replacement():
    with mock_torch.enable():
        from torch.distributions import Wishart
        from torch.distributions.relaxed_bernoulli import RelaxedBernoulli

        assert not isinstance(ours.Normal(0.0, 1.0), Wishart)
        for absent in (Wishart, RelaxedBernoulli):
            with pytest.raises(RuntimeError, match="wrap_jax"):
                absent(1.0)
