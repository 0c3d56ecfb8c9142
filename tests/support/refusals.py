"""Calls that are made in sbpjax and in PyTorch, and end alike: with a result, or with an error of one builtin class."""

import builtins
import warnings

import numpy as np
import torch

import sbpjax as flow


def _outcome(package, case):
    package.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            eval(case, {"T": package, "F": package.nn.functional, "np": np})
    except Exception as error:
        return error
    return None


def _kinds(error):
    return {c for c in type(error).__mro__ if c.__module__ == builtins.__name__} - {object, BaseException, Exception}


def assert_refused_alike(case: str) -> None:
    """Fail unless a call with `T` for the package, and `F` for its functions of layers, ends as in PyTorch."""
    wanted, got = _outcome(torch, case), _outcome(flow, case)
    if wanted is None:
        assert got is None, f"{case}: {got!r}"
        return
    assert got is not None, f"{case} gave a result; PyTorch raises {wanted!r}"
    assert type(wanted) in _kinds(got) or type(wanted).__module__ != "builtins", f"{case}: {got!r}, {wanted!r}"
    assert "seen: " in str(got) and "fix:  " in str(got)
