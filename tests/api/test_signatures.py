"""Every argument that OneFlow 0.9 takes is taken, in its order and by its name, and what is ignored is documented."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax._core.functions.table.public import public
from sbpjax._core.tensor.calls.argument_names import FORMS, IGNORED
from tests.api import compatibility, coverage, signatures


def test_every_recorded_signature_is_taken():
    assert signatures.all_lacking() == {}


def test_the_record_is_of_the_names_that_are_promised():
    promised = {
        f"{space}.{name}".removeprefix("oneflow.").removeprefix("oneflow")
        for space, rows in coverage.names().items()
        for priority, _, name in rows
        if priority < 3
    }
    assert set(signatures.recorded()) <= promised
    assert len(signatures.recorded()) > 900


def test_exceptions_are_still_needed():
    def taken(name):
        return not any(signatures.lacking(name, text) for text in signatures.recorded()[name])

    assert [name for name in signatures.LEFT_OUT if taken(name)] == []


def test_every_function_of_a_form_exists():
    for namespace, forms in FORMS.items():
        for names in forms.values():
            for name in names.split():
                assert coverage.resolve(f"{namespace}{name}") is not None, f"{namespace}{name}"


def test_the_page_lists_what_is_ignored():
    assert compatibility.PAGE.read_text() == compatibility.page(), "write it anew: make api"
    assert {name for _, name in compatibility.ignored()} == set(IGNORED)


def test_arguments_in_oneflows_order():
    x = flow.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert flow.ones_like(x, flow.int32).dtype == flow.int32
    assert flow.arange(0, 3, 1, flow.float64).dtype == flow.float64
    assert flow.argmax(x, 1, False, flow.int32).dtype == flow.int32
    assert flow.addmm(flow.ones(2, 2), x, x, 2.0, 3.0).tolist() == (3 + 2 * (x @ x)).tolist()
    assert x.new_full((2,), 1.0, flow.int32).tolist() == [1, 1]


@pytest.mark.parametrize("cls", ["MSELoss", "L1Loss", "KLDivLoss", "SmoothL1Loss"])
def test_a_reduction_that_comes_first_is_no_old_flag(cls):
    x, y = flow.tensor([1.0, 2.0, 3.0]), flow.tensor([1.5, 0.5, 2.0])
    requested = getattr(flow.nn, cls)(reduction="sum")(x, y)
    assert getattr(flow.nn, cls)("sum")(x, y).item() == requested.item()
    reference = getattr(torch.nn, cls)(reduction="sum")(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.5, 0.5, 2.0]))
    assert requested.item() == pytest.approx(reference.item())


def test_old_flags_in_order_mean_what_they_do_in_pytorch():
    x, y = flow.tensor([1.0, 2.0, 3.0]), flow.tensor([1.5, 0.5, 2.0])
    assert flow.nn.MSELoss(False)(x, y).item() == flow.nn.MSELoss(reduction="sum")(x, y).item()
    assert flow.nn.functional.l1_loss(x, y, None, False).shape == (3,)


def test_losses_in_oneflows_order():
    logits, target = flow.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), flow.tensor([0, 1])
    wanted = flow.nn.CrossEntropyLoss(ignore_index=1, reduction="sum")(logits, target)
    assert flow.nn.CrossEntropyLoss(None, 1, "sum")(logits, target).item() == wanted.item()
    assert flow.nn.functional.cross_entropy(logits, target, None, 1, "sum").item() == wanted.item()
    x, y = flow.tensor([0.2, 0.7]), flow.tensor([0.0, 1.0])
    assert flow.nn.BCELoss(None, "sum")(x, y).item() == flow.nn.BCELoss(reduction="sum")(x, y).item()
    assert (
        flow.nn.functional.binary_cross_entropy(x, y, None, "sum").item() == flow.nn.BCELoss(None, "sum")(x, y).item()
    )
    assert flow.nn.functional.mse_loss(x, y, "none").shape == (2,)
    assert flow.nn.functional.smooth_l1_loss(x, y, 0.5, "sum").item() == pytest.approx(
        flow.nn.SmoothL1Loss(reduction="sum", beta=0.5)(x, y).item()
    )


def test_a_form_is_applied_once_and_given_twice_is_an_error():
    def function(a, b=None, *, c=None):
        return a, b, c

    taking = public(function, {}, "x=a b c useless!")
    assert taking(1, 2, 3) == (1, 2, 3)
    assert taking(x=1, useless=5) == (1, None, None)
    assert taking(1, 2, 3, 4) == (1, 2, 3)
    with pytest.raises(TypeError):
        taking(1, 2, 3, c=4)
    with pytest.raises(TypeError):
        taking(1, 2, 3, 4, 5)
    with pytest.raises(TypeError):
        public(function, {}, "x=a b * useless!")(1, 2, 3)


def test_channels_last():
    image = np.arange(32, dtype=np.float32).reshape(1, 2, 4, 4)
    first, last = flow.tensor(image), flow.tensor(image.transpose(0, 2, 3, 1).copy())
    F = flow.nn.functional
    pooled = F.max_pool2d(last, 2, data_format="channels_last")
    assert np.array_equal(pooled.numpy().transpose(0, 3, 1, 2), F.max_pool2d(first, 2).numpy())
    weight = flow.tensor(np.arange(24, dtype=np.float32).reshape(3, 2, 2, 2))
    moved = F.conv2d(last, weight.permute(0, 2, 3, 1), channel_pos="channels_last")
    assert np.array_equal(moved.numpy().transpose(0, 3, 1, 2), F.conv2d(first, weight).numpy())
    with pytest.raises(ValueError, match="data_format is 'channels_first'"):
        F.unfold(first, 2, data_format="channels_last")
    with pytest.raises(ValueError, match="'channels_first' or 'channels_last'"):
        F.max_pool2d(first, 2, data_format="NCHW")
