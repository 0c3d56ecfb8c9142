"""A wrong argument of a constructor or a method raises an error that shows the signature."""

import pytest

import sbpjax as flow
from sbpjax._core.runtime.signature_errors import explain_arguments
from sbpjax.errors import OpTypeError, SbpjaxError


@pytest.mark.parametrize(
    ("call", "fix"),
    [
        (lambda: flow.models.Parallel(dp=2), r"data, not dp: Parallel\(\*, data=1, fsdp=1, "),
        (lambda: flow.models.gpt2.GPT2Config(n_embed=4), r"n_embd, not n_embed: GPT2Config\(\*, "),
        (
            lambda: flow.graph.GraphConfig().enable_zero(level=2),
            r"stage, not level: enable_zero\(mode=True, \*, sta",
        ),
        (lambda: flow.graph.GraphConfig().enable_zero(other=2), r"leave out other: enable_zero\(mode=True"),
        (lambda: flow.optim.SGD(), r"SGD\(params, lr=0.001"),
        (lambda: flow.utils.data.DataLoader([1], batchsize=2), r"batch_size, not batchsize: DataLoader\(dataset, "),
    ],
)
def test_wrong_keyword_shows_the_meant_one_and_all(call, fix):
    with pytest.raises(OpTypeError, match=rf"fix: +{fix}"):
        call()


def test_type_error_inside_a_call_is_unchanged():
    @explain_arguments
    class Options:
        def read(self):
            return len(len)

    with pytest.raises(TypeError, match="has no len") as caught:
        Options().read()
    assert not isinstance(caught.value, SbpjaxError)
