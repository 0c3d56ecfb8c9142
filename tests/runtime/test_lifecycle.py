"""Marks of single names: a stage below that of the rest, and deprecation with its versions."""

import doctest
import operator
import warnings

import pytest

import sbpjax as flow
from sbpjax._core.runtime import lifecycle
from tests.api.stages import STAGES

NAMES = [
    *("pipeline.auto_stages", "env.init_rdma", "env.rdma_is_initialized"),
    *("graph.GraphConfig.enable_iree", "graph.GraphConfig.enable_tensorrt"),
]


def test_a_stage_stands_in_the_docstring_and_the_rest_stays():
    @lifecycle.at_stage("pre-alpha")
    def f():
        """Return two.

        Returns:
            Two.
        """
        return 2

    assert f() == 2 and f.__stage__ == "pre-alpha"
    assert f.__doc__ == "Return two.\n\nStage: pre-alpha; see docs/reference/stages.md.\n\nReturns:\n    Two."


@pytest.mark.parametrize("name", NAMES)
def test_names_that_are_less_than_alpha_are_marked(name):
    found = operator.attrgetter(name)(flow)
    assert found.__stage__ == "pre-alpha" and found.__stage__ in STAGES and "Stage: pre-alpha" in found.__doc__


def test_a_deprecated_name_warns_where_it_is_called():
    @lifecycle.deprecated(since="0.3", instead="sbpjax.summary", gone="0.5")
    def describe(x):
        """Describe."""
        return x

    with pytest.warns(FutureWarning, match="since 0.3 and will be gone in 0.5: write sbpjax.summary") as caught:
        assert describe(3) == 3
    assert caught[0].filename == __file__ and "Deprecated since 0.3" in describe.__doc__


def test_nothing_is_deprecated_yet():
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        flow.ones(2).sum()


def test_the_examples():
    assert doctest.testmod(lifecycle).failed == 0
