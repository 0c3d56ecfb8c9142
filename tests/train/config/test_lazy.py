"""Calls that are written down, changed, and made later."""

import math

import pytest

from sbpjax.errors import ConfigError
from sbpjax.models.gpt2 import GPT2, GPT2Config
from sbpjax.train.config import LazyCall, instantiate
from sbpjax.train.config.lazy import path_of


class Box:
    """Something with arguments."""

    def __init__(self, size, *, content=None, function=None):
        self.size, self.content, self.function = size, content, function

    class Inner:
        """A class in a class."""


def test_a_call_is_made_later_and_innermost_first():
    call = LazyCall(GPT2)(config=LazyCall(GPT2Config)(n_layer=1, n_embd=16, n_head=2, vocab_size=8, n_positions=4))
    call.config.n_layer = 2
    assert len(instantiate(call).blocks) == 2


def test_arguments_by_place_references_functions_and_partial_calls():
    call = LazyCall(Box)(3, content=[LazyCall(Box)(1), {"a": "${size_of_all}"}], function=math.sqrt)
    from omegaconf import OmegaConf

    tree = OmegaConf.create({"size_of_all": 7, "box": call, "later": LazyCall(Box, partial=True)(content=2)})
    made = instantiate(tree)
    assert made["box"].size == 3 and made["box"].content[0].size == 1 and made["box"].content[1] == {"a": 7}
    assert made["box"].function is math.sqrt
    assert made["later"](5).size == 5 and made["later"](5).content == 2


def test_paths_are_what_an_import_finds():
    assert path_of(Box.Inner) == f"{__name__}:Box.Inner" and path_of(len) == "builtins:len"
    assert instantiate(LazyCall(Box.Inner)()).__class__ is Box.Inner


@pytest.mark.parametrize(
    ("wrong", "seen", "fix"),
    [
        (lambda: LazyCall(Box)(sise=1), "an argument 'sise'", "write 'size'"),
        (lambda: LazyCall(GPT2Config)(learning=1), "an argument 'learning'", "leave 'learning' out"),
        (lambda: LazyCall(lambda: 1), "something without a name", "def it at the top of a file"),
        (lambda: LazyCall(Box)(size=Box(1)), "a Box", "LazyCall(Box)(...)"),
        (lambda: instantiate(LazyCall(Box)(), "box"), "missing a required argument: 'size'", "set box to"),
        (
            lambda: instantiate(LazyCall(Box)(size="${nothing.here}"), "box"),
            "Interpolation key",
            "name an existing value",
        ),
    ],
)
def test_wrong_calls_are_told(wrong, seen, fix):
    with pytest.raises(ConfigError) as error:
        wrong()
    parts = dict(line.strip().split(": ", 1) for line in str(error.value).splitlines()[1:])
    assert seen in parts["seen"] and parts["fix"].strip().startswith(fix), error.value


def test_what_is_no_longer_there_is_told():
    call = LazyCall(Box)(1)
    call["_call_"] = f"{__name__}:Bocks"
    with pytest.raises(ConfigError, match="no attribute 'Bocks'"):
        instantiate(call)
