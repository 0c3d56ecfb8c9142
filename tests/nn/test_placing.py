"""`Module.to_global` in a job: parts are joined, and equal wholes are warned of."""

import re
import warnings
from pathlib import Path

import pytest

import sbpjax as flow
from sbpjax import errors, nn

S0, B, P = flow.sbp.split(0), flow.sbp.broadcast, flow.sbp.partial_sum
TEXT = (
    r"(?s)Linear\.to_global\(.*\(at .*test_placing\.py:\d+\)\n  seen: ranks \[0, 1\] hold equal parameters, "
    r"such as weight, local float32\[4, 8\] on each\n  rule: .*every process's tensor is one part.*"
    r"\n  fix:  .*broadcast.*then"
)


def layer():
    flow.manual_seed(0)
    return nn.Linear(8, 4)


def warned(main):
    """Run a function on two ranks and return what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        flow.simulate(ranks=2)(main)()
    return [(Path(w.filename).name, str(w.message)) for w in caught]


def test_parts_that_are_equal_wholes_are_said_once():
    def main():
        everywhere = flow.placement.all("cpu")
        assert layer().to_global(everywhere, S0).weight.shape == (8, 8)  # as in OneFlow
        assert layer().to_global(everywhere, P).weight.shape == (4, 8)

    [(file, text)] = warned(main)
    assert file == "test_placing.py" and re.match(TEXT, text), text


def test_partial_sums_of_equal_wholes_are_said():
    assert len(warned(lambda: layer().to_global(flow.placement.all("cpu"), P))) == 1


def test_what_is_no_trap_is_not_warned_of():
    def main():
        everywhere = flow.placement.all("cpu")
        whole = layer()
        want = whole.weight.numpy()
        divided = whole.to_global(everywhere, B).to_global(sbp=S0)  # the remedy
        assert divided.weight.sbp == (S0,) and (divided.weight.numpy() == want).all()
        part = layer()
        part.weight.data += flow.env.get_rank()  # each rank has its own
        assert part.to_global(everywhere, S0).weight.shape == (8, 8)
        layer().to_global(flow.placement("cpu", [0]), S0)  # of one process
        nn.ReLU().to_global(everywhere, S0)

    assert warned(main) == []


def test_one_process_divides():
    placement = flow.placement("cpu", [0, 1])
    assert layer().to_global(placement, S0).weight.shape == (4, 8)


def test_all_tensors_are_laid_out_or_none():
    placement, model = flow.placement("cpu", [0, 1]), nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4))
    with pytest.raises(
        errors.SbpError, match=r"(?s)Sequential\.to_global.*seen: 0\.bias, local float32\[4\].*0 <= d < 1"
    ):
        model.to_global(placement, flow.sbp.split(1))
    with pytest.raises(errors.MixedTensorError, match=r"seen: 0\.weight, local float32\[4, 8\], and no placement"):
        model.to_global(sbp=B)
    with pytest.raises(errors.SbpError, match="one entry per"):
        model.to_global(placement, [B, B])
    assert not any(x.is_global for x in model.state_dict().values())
    model[0].to_global(placement, B)
    with pytest.raises(errors.MixedTensorError, match=r"seen: 1\.weight"):  # the first layer is global already
        model.to_global(sbp=S0)
    assert model[0].weight.sbp == (B,)
