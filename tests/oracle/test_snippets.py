"""Recorded snippets: what the API returns and refuses, run by four threads that act as OneFlow's four processes."""

import builtins
import math

import pytest

import sbpjax as flow
from sbpjax import errors
from tests.oracle.differences import SNIPPETS
from tests.oracle.notation import load
from tests.oracle.ranks import run_snippet

TOLERANCE = 2e-4  # the recorded numbers have five decimals
LISTED = {(d.file, name): d for d in SNIPPETS for name in d.ids}


def _cases(*files):
    return [pytest.param(f, c, id=f"{f}-{c['id']}") for f in files for c in load(f)["cases"]]


def same(ours, theirs) -> bool:
    """Compare a value with a recorded one; names of the package and of errors may differ, numbers are rounded."""
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and set(ours) == set(theirs) and all(same(ours[k], theirs[k]) for k in theirs)
    if isinstance(theirs, list):
        if len(theirs) == 2 and theirs[0] == "raise" and isinstance(ours, list) and ours[:1] == ["raise"]:
            return _is_kind_of(ours[1], theirs[1])
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, (int, float)) and isinstance(ours, (int, float)):
        return math.isclose(ours, theirs, rel_tol=TOLERANCE, abs_tol=TOLERANCE) or (ours != ours and theirs != theirs)
    if isinstance(theirs, str) and isinstance(ours, str):
        return ours.replace("sbpjax.", "oneflow.") == theirs
    return ours == theirs


def _is_kind_of(ours: str, theirs: str) -> bool:
    """Return whether our error is also the builtin one that OneFlow raised; its asserts are type errors here."""
    mine = getattr(errors, ours, None) or getattr(builtins, ours, None)
    kinds = (TypeError, ValueError) if theirs == "AssertionError" else getattr(builtins, theirs)
    return mine is not None and issubclass(mine, kinds)


def agrees(case: dict, ends) -> bool:
    """Return whether every rank ended as recorded: with the value, or with an error of four parts."""
    if "result" in case or "result_by_rank" in case:
        wanted = case.get("result_by_rank") or [case["result"]] * len(ends)
        return all(e.error is None and same(e.value, w) for e, w in zip(ends, wanted, strict=True))
    return all(_explained(e.error) or _all_refused(e.value) for e in ends)


def _explained(error) -> bool:
    """Return whether an error is of this package, with its four parts."""
    return isinstance(error, errors.SbpjaxError) and all(
        f"\n  {part}:" in str(error) for part in ("seen", "rule", "fix")
    )


def _all_refused(value) -> bool:
    """Return whether a list of attempts was refused one by one where OneFlow aborted."""
    return isinstance(value, list) and len(value) > 0 and all(isinstance(v, list) and v[:1] == ["raise"] for v in value)


# Of unequal copies under broadcast the first rank's is taken, as in OneFlow, here with a warning.
@pytest.mark.filterwarnings("ignore:x.to_global")
@pytest.mark.parametrize("file, case", _cases("api_behaviour", "api_behaviour_2", "grad", "errors"))
def test_snippet(file, case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    facts = load(file)
    ends = run_snippet(facts["prelude"], case["code"], flow)
    if (file, case["id"]) in LISTED:
        assert not agrees(case, ends), "listed as a difference, but equal"
        expected = LISTED[file, case["id"]].ours
        for end in ends:
            if expected == "raises":
                assert _explained(end.error), end
            else:
                assert end.error is None, end
        return
    assert agrees(case, ends), f"{case} but {ends[0].value!r} {ends[0].error}"
