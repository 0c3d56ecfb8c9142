"""Traceback folding: an uncaught error of a user's program shows the user's frames alone.

    Traceback (most recent call last):
      File "train.py", line 3, in <module>          the frames of sbpjax and JAX that followed are left out
        x @ w
    sbpjax.errors.OpError: matmul (at train.py:3) …

Tests: `tests/test_errors.py`.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import traceback
import types
from collections.abc import Iterator
from typing import Any

from sbpjax._core.runtime.user_line import full_tracebacks, is_own_file, is_users_file
from sbpjax.errors import RuleError, SbpjaxError, UnknownNameError, nearest


@contextlib.contextmanager
def fold_traceback(error: BaseException) -> Iterator[None]:
    """Within the block, reduce the traceback of a user's error to the frames of the user's program.

    A user's mistake is a `SbpjaxError`, or an error from the user's own code that came through sbpjax: a ``build`` that
    divides by zero. An error of another class from inside sbpjax, JAX or NumPy is a defect, and shows all frames. The
    same holds for each error that this one was raised from; those that never left the library are left out.

    Nothing is folded under ``SBPJAX_FULL_TRACEBACK=1``. For a wrong name of a tensor, a graph or a module of sbpjax the
    nearest existing name is added, if any: Python itself does this only in terminals, and only for small classes.
    """
    before, explained = [], []
    named = [(one, one.args, one.obj) for one in _chain(error) if isinstance(one, AttributeError) and _is_ours(one)]
    for one, args, obj in named:
        near = nearest(str(one.name), dir(obj))
        if near is not None:
            one.args, one.obj = (f"{args[0]}. Did you mean: {near!r}?",), None  # Python's own would be printed twice
    for one in [] if full_tracebacks() else _chain(error):
        before.append((one, one.__traceback__, one.__cause__, one.__suppress_context__))
        is_explained = isinstance(one, SbpjaxError) and not isinstance(one, RuleError)
        if is_explained or one in explained or _is_of_users_code(one):
            one.__traceback__ = _without_library(one.__traceback__)
        raised_from = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
        if is_explained and raised_from is not None:
            if any(map(is_users_file, _files(raised_from.__traceback__))):
                explained.append(raised_from)
            else:
                one.__cause__ = None  # which hides the context as well
    try:
        yield
    finally:
        for one, trace, cause, suppressed in before:
            one.__traceback__, one.__cause__, one.__suppress_context__ = trace, cause, suppressed
        for one, args, obj in named:
            one.args, one.obj = args, obj


def _chain(error: BaseException | None) -> list[BaseException]:
    """Return an error with those that it was raised from, and those of a group."""
    found: list[BaseException] = []
    ahead = [error]
    while ahead:
        one = ahead.pop()
        if one is not None and one not in found:
            found.append(one)
            ahead += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
    return found


def _is_ours(error: AttributeError) -> bool:
    """Return whether an error suggests no name yet and concerns an object of sbpjax; a module answers for itself."""
    if error.name is None or error.obj is None or not error.args:
        return False
    if isinstance(error, SbpjaxError) and not isinstance(error, UnknownNameError):
        return False
    homes = [error.obj.__name__] if isinstance(error.obj, types.ModuleType) else _homes(type(error.obj))
    return isinstance(error, UnknownNameError) or any(home.partition(".")[0] == "sbpjax" for home in homes)


def _homes(cls: type) -> list[str]:
    return [str(one.__module__) for one in cls.__mro__]


def _files(trace: types.TracebackType | None) -> list[str]:
    return [frame.f_code.co_filename for frame, _ in traceback.walk_tb(trace)]


def _is_of_users_code(error: BaseException) -> bool:
    """Return whether an error was raised in the user's code; Python's own and NumPy's files belong to their callers."""
    files = [file for file in _files(error.__traceback__) if is_users_file(file) or is_own_file(file)]
    return bool(files) and not is_own_file(files[-1])


def _without_library(trace: types.TracebackType | None) -> types.TracebackType | None:
    """Return a traceback without the library's frames, and those of Python, NumPy and JAX that it called."""
    kept, inside = [], False
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        inside = is_own_file(file) or (inside and not is_users_file(file))
        if not inside:
            kept.append(trace)
        trace = trace.tb_next
    after = None
    for one in reversed(kept):
        after = types.TracebackType(after, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return after


def fold_tracebacks() -> None:
    """Install hooks that print errors ending a program, a thread or a notebook cell as `fold_traceback` tracebacks.

    The hooks that were installed before do the printing.
    """
    shows, in_thread = sys.excepthook, threading.excepthook

    def show(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
        with fold_traceback(error):
            shows(kind, error, error.__traceback__ or trace)

    def show_in_thread(args: threading.ExceptHookArgs) -> None:
        error = args.exc_value
        if error is None:
            in_thread(args)
            return
        with fold_traceback(error):
            in_thread(threading.ExceptHookArgs((args.exc_type, error, error.__traceback__, args.thread)))

    sys.excepthook, threading.excepthook = show, show_in_thread
    notebook = sys.modules.get("IPython")
    shell = notebook.get_ipython() if notebook is not None else None
    if shell is not None:
        _fold_in_notebook(shell)


def _fold_in_notebook(shell: Any) -> None:
    """Let IPython show errors `fold_traceback`; a handler that the user gives ``set_custom_exc`` stays in charge."""
    shows = shell.showtraceback

    @functools.wraps(shows)
    def show(exc_tuple: tuple | None = None, *args: Any, **options: Any) -> Any:
        error = exc_tuple[1] if exc_tuple else sys.exc_info()[1]
        if error is None:
            return shows(exc_tuple, *args, **options)
        with fold_traceback(error):
            return shows((type(error), error, error.__traceback__), *args, **options)

    shell.showtraceback = show
