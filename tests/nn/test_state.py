"""States of modules: loading and saving that a class overrides, older versions, buffers and modules that are set."""

import copy
import pickle

import pytest

import sbpjax as flow
from sbpjax import nn


class Versioned(nn.Module):
    """Renames an old key, as models that have changed do; PyTorch's signature."""

    def __init__(self):
        super().__init__()
        self.new = nn.Parameter(flow.zeros(2))

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        if prefix + "old" in state_dict:
            state_dict[prefix + "new"] = state_dict.pop(prefix + "old")
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "note"] = "x"


def test_overridden_loading_and_saving():
    model = nn.Sequential(Versioned())
    assert set(model.state_dict()) == {"0.new", "0.note"}
    model.load_state_dict({"0.old": flow.ones(2)})
    assert model[0].new.tolist() == [1.0, 1.0]
    model.load_state_dict({"0.old": flow.ones(2) * 2}, assign=True)
    assert model[0].new.tolist() == [2.0, 2.0]
    given = {}
    assert model.state_dict(given, "p.", False) is given and "p.0.new" in given


def test_private_hooks_of_states():
    layer = nn.Linear(2, 2)
    layer._register_state_dict_hook(lambda m, state, prefix, meta: state.update({prefix + "extra": flow.ones(1)}))
    layer._register_load_state_dict_pre_hook(lambda state, prefix, *rest: state.pop(prefix + "extra"))
    layer.load_state_dict(layer.state_dict())


def test_submodules_can_be_set():
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU()))
    model.set_submodule("1.0", nn.GELU())
    assert isinstance(model[1][0], nn.GELU)
    with pytest.raises(AttributeError):
        model.set_submodule("1.7", nn.GELU(), strict=True)


def test_buffers_register_themselves():
    model = nn.Module()
    model.kept = nn.Buffer(flow.ones(2))
    model.dropped = nn.Buffer(flow.ones(3), persistent=False)
    assert [n for n, _ in model.named_buffers()] == ["kept", "dropped"] and list(model.state_dict()) == ["kept"]


def test_states_of_older_versions_unpickle():
    layer = nn.Linear(2, 2)
    state = layer.__dict__.copy()
    del state["_backward_pre_hooks"]
    made = nn.Linear.__new__(nn.Linear)
    made.__setstate__(state)
    assert made(flow.ones(1, 2)).shape == (1, 2)
    again = pickle.loads(pickle.dumps(layer))
    assert again.weight.tolist() == copy.deepcopy(layer).weight.tolist()
