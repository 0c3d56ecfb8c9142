"""The API that is promised is there, every public op has a spec, and the page about it says what is so."""

import re
from pathlib import Path

import pytest

import sbpjax
from sbpjax._core.functions.table import absent_names as absent
from sbpjax.errors import AbsentError
from tests.api import coverage
from tests.api.ops import NOT_OPS, public_ops

# Names may be added before the page is written anew (`make api`); none that it lists as here may go.
NEWER = 40


def test_priority_1_is_complete():
    assert coverage.missing(1) == {}


def test_priority_2_is_complete_to_95_percent():
    assert coverage.share(2) >= 0.95, coverage.missing(2)


def test_every_public_op_has_a_spec():
    exempt = {*NOT_OPS, *(f"Tensor.{name}" for name in NOT_OPS), *(name.removeprefix("Tensor.") for name in NOT_OPS)}
    lacking = [name for name in public_ops() if not coverage.has_spec(name) and name not in exempt]
    assert not lacking, f"no spec in tests/op_specs for {' '.join(lacking)}"


def test_what_is_no_op_is_there_and_has_no_spec():
    specs = coverage.SPECS
    assert [name for name in NOT_OPS if name in specs or coverage.resolve(name) is None] == []


def test_the_page_claims_what_is_there():
    shown = coverage.PAGE.read_text()
    for priority in (1, 2):
        part = shown.split(f"## Missing names of priority {priority}")[1].split("\n## ")[0]
        listed = set()
        for line in part.splitlines():
            if line.startswith("- "):
                space, rest = line[2:].split(":", 1)
                listed |= {f"{space}.{name}" for name in re.findall(r"`([^`]+)`", rest)}
        now = {f"{space}.{name}" for space, several in coverage.missing(priority).items() for name in several}
        assert now <= listed, f"the page lists as here: {sorted(now - listed)}"
        assert len(listed - now) <= NEWER, "write the page anew: make api"
    wanted = set(re.findall(r"`([^`]+)`", shown.split("## Ops with a spec")[1]))
    gone = wanted - {name.rpartition(".")[2] for name in coverage.SPECS}
    assert not gone, f"the page lists specs that are gone: {sorted(gone)}"


@pytest.mark.parametrize("name", ["_C.dispatch_adam_update", "nn.OFRecordReader", "jit"])
def test_absent_names_say_what_to_use(name):
    space, _, last = name.rpartition(".")
    home = coverage.resolve(space)
    assert not hasattr(home, last)
    with pytest.raises(AbsentError, match=r"(?s)seen: a name of OneFlow.*rule: .*fix:  sbpjax\.") as caught:
        getattr(home, last)
    assert isinstance(caught.value, AttributeError)


def test_old_names_say_how_it_is_written_today():
    page = (Path(__file__).parents[2] / "docs/how_to/oneflow_scripts.md").read_text()
    rows = re.findall(r"^\| (`.*`) \| (.*) \|$", page.partition("## Old names")[2], flags=re.MULTILINE)
    assert [instead for _, instead in rows] == [instead for _, instead in absent.OLD]
    for names, instead in rows:
        for name in re.findall(r"`(\w+)`", names):  # patterns are tried below
            with pytest.raises(AbsentError, match=r"before it had global tensors; see .*oneflow_scripts.md") as caught:
                getattr(sbpjax, name)
            assert instead in str(caught.value)
    for name in ("constant_initializer", "consistent_tensor"):
        with pytest.raises(AbsentError, match="before it had global tensors"):
            getattr(sbpjax, name)


def test_other_names_fail_as_ever():
    with pytest.raises(AttributeError, match="module 'sbpjax' has no attribute 'no_such_name'") as caught:
        getattr(sbpjax, "no_such_name")  # noqa: B009
    assert not isinstance(caught.value, AbsentError)
