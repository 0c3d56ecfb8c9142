"""Data parallelism of local modules."""

import pytest

import sbpjax as flow
from sbpjax import errors


def test_one_process_is_the_module_itself():
    module = flow.nn.Linear(3, 2)
    wrapped = flow.nn.parallel.DistributedDataParallel(module)
    x = flow.ones(4, 3)
    assert (wrapped(x) == module(x)).all()
    assert list(wrapped.state_dict()) == ["module.weight", "module.bias"]
    with wrapped.no_sync():
        wrapped(x).sum().backward()
    assert module.weight.grad is not None


def test_global_modules_are_refused():
    where = flow.placement("cpu", [0, 1])
    with pytest.raises(errors.MixedTensorError, match="fix:  use the module itself"):
        flow.nn.parallel.DistributedDataParallel(flow.nn.Linear(3, 2).to_global(where, flow.sbp.broadcast))
