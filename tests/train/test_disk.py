"""Errors of the disk in words, raised on all ranks."""

import errno
import os

import pytest

import sbpjax as flow
from sbpjax import env
from sbpjax.errors import TrainError
from sbpjax.train.disk import convert_os_errors, run_on_rank_0


@pytest.mark.parametrize(
    ("number", "fix"),
    [
        (errno.ENOSPC, "make room on the disk of run7, then --resume; or choose another directory"),
        (errno.EDQUOT, "make room on the disk of run7, then --resume; or choose another directory"),
        (errno.EACCES, "rights to read and write run7/x, or another directory"),
        (errno.EROFS, "rights to read and write run7/x, or another directory"),
        (errno.ENOTDIR, "move run7/x away, or choose another directory"),
        (errno.EIO, "check run7/x and its disk"),
    ],
)
def test_the_fix_is_that_of_the_error(number, fix):
    with pytest.raises(TrainError) as raised, convert_os_errors("writing x", "run7"):
        raise OSError(number, os.strerror(number), "run7/x")
    lines = str(raised.value).splitlines()
    assert lines[0].startswith(f"writing x (at {__file__}:") and lines[3] == f"  fix:  {fix}"
    assert os.strerror(number) in lines[1]


def test_other_errors_pass():
    with pytest.raises(KeyError), convert_os_errors("writing x", "run7"):
        raise KeyError(1)


def test_all_ranks_raise_what_rank_0_does():
    def work():
        if env.get_rank() != 0:
            raise AssertionError("not on this rank")
        raise TrainError("writing x", "a full disk", "a rule", "a fix")

    @flow.simulate(ranks=2)
    def main():
        with pytest.raises(TrainError, match="(?s)writing x.*seen: a full disk.*fix:  a fix"):
            run_on_rank_0("writing x", work)
        run_on_rank_0("writing y", lambda: None)
        return True

    assert main() == [True, True]
