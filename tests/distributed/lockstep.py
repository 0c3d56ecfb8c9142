"""Runs in every rank that `foundation` starts: pytest over the same tests in the same order, in lock step.

Rank 3 of 4 runs ``test_matmul[S0]`` together with the others, on one placement that reaches over all of them. After
the setup and after the test the ranks tell each other how it ended; a test passes when it passed on all. Where it ended
differently the ranks may have parted in the middle of a collective, so all processes end and the launcher starts them
again behind that test. A rank that does not come back (it waits in a program for one that failed) is ended likewise.

What tests written for one process take for granted is put right here, outside the library: `jax.devices()` deals out
the devices in turn (rank k of a placement belongs to process k mod n, so that two neighbours never share one),
``tmp_path`` is one folder for all, what a test draws with NumPy or PyTorch is the same in all, ``local_shards`` gives
those of all ranks, a test (never the library) may read a `jax.Array` that lies on several processes, and the local
tensor of which it makes a global one, the same in every process, is the whole of it, as in one process; so is its
gradient (what they mean as parts is held by scripts/facts.py).
"""

import argparse
import faulthandler
import json
import os
import pickle
import random
import sys
import time
import zlib
from pathlib import Path

import jax
import numpy as np
import pytest
import torch

import sbpjax
from sbpjax._core.compiler import conversions
from sbpjax._core.runtime import processes as worlds
from sbpjax._core.tensor.creation import convert
from sbpjax.nn import placing as moving
from sbpjax.sbp import algebra

RESTART = 75  # the code that the launcher starts all ranks again from
LIBRARY = str(Path(sbpjax.__file__).parent) + os.sep
JAX = str(Path(jax.__file__).parent) + os.sep


def deal_devices():
    """Let `jax.devices` name the devices of the processes in turn."""
    ask = jax.devices

    def dealt(backend=None):
        found = ask(backend)
        if sys._getframe(1).f_code.co_filename.endswith("multihost_utils.py"):  # JAX's own: it counts on its order
            return found
        places = {}
        for d in found:
            places[d] = sum(1 for other in places if other.process_index == d.process_index)
        return sorted(found, key=lambda d: (places[d], d.process_index))

    jax.devices = dealt


def read_whole_arrays():
    """Let a test read a `jax.Array` of which this process has a part only; all ranks read it together."""
    from jax._src.array import ArrayImpl  # no public way to change what np.asarray(array) does

    own = ArrayImpl._value.fget

    def value(self):
        spread = not self.is_fully_addressable and not (
            self.is_fully_replicated and self.sharding.has_addressable_devices
        )
        if not spread or self.is_deleted() or called_by_library():
            return own(self)
        if self._npy_value is None:
            import numpy as np

            shards = [(s.index, np.asarray(s.data)) for s in self.addressable_shards]
            whole = np.zeros(self.shape, self.dtype)
            for theirs in worlds.current().exchange("a test reads an array", shards).values():
                for index, block in theirs:
                    whole[index] = block
            self._npy_value = whole
        return self._npy_value

    ArrayImpl._value = property(value)


def show_all_shards():
    """Let a test see what the ranks of all processes hold."""
    own = conversions.local_shards

    def local_shards(array, layout):
        mine = own(array, layout)
        if called_by_library():
            return mine
        outcomes_text = worlds.current().exchange("a test reads shards", mine)
        return dict(sorted((rank, block) for theirs in outcomes_text.values() for rank, block in theirs.items()))

    def of_tensor(self):
        layout = self._fresh()._layout
        return convert_shards(self) if layout is None else local_shards(self._array, layout)

    convert_shards = sbpjax.Tensor.local_shards
    conversions.local_shards, sbpjax.Tensor.local_shards = local_shards, of_tensor


def take_locals_for_wholes():
    """Let a local tensor that every process has be the whole on its way to a global one and back, gradients too."""
    own, own_of_module, own_to_local = sbpjax.Tensor.to_global, sbpjax.nn.Module.to_global, sbpjax.Tensor.to_local
    modules_to_move = 0  # a test's calls of `Module.to_global` that are under way

    def to_global(self, placement=None, sbp=None, **options):
        if (called_by_library() and not modules_to_move) or not whole_here(self) or not fits(self, placement, sbp):
            return own(self, placement, sbp, **options)
        everywhere = [sbpjax.sbp.broadcast] * len(placement.hierarchy)
        whole = own(self.detach(), placement, everywhere)
        convert._record(self, whole, lambda grad: own_to_local(own(grad, placement, everywhere)))
        return own(whole, placement, sbp, **options)

    def of_module(self, placement=None, sbp=None):
        nonlocal modules_to_move
        if called_by_library():
            return own_of_module(self, placement, sbp)
        modules_to_move += 1
        try:
            return own_of_module(self, placement, sbp)
        finally:
            modules_to_move -= 1

    def to_local(self, **options):
        if called_by_library() or whole_here(self) or isinstance(self._fresh()._array, jax.core.Tracer):
            return own_to_local(self, **options)
        local = own_to_local(self.detach(), **options)
        if local.is_global:  # in a global mode
            return own_to_local(self, **options)
        placement, sbp = self.placement, convert._no_partial(self.sbp)
        return convert._record(self, local, lambda grad: own(grad, placement, sbp) if grad.is_local else grad)

    sbpjax.Tensor.to_global, sbpjax.nn.Module.to_global, sbpjax.Tensor.to_local = to_global, of_module, to_local
    moving.warn_of_equal_parts = lambda *of_wholes: None


def whole_here(x):
    """Return whether a tensor is local and has a value."""
    return not (x.is_global or x.is_meta or isinstance(x._array, jax.core.Tracer))


def fits(x, placement, sbp):
    """Return whether a placement and an sbp fit a tensor; those that do not are left to the library to refuse."""
    try:
        algebra.parse(sbp, placement.hierarchy, x.ndim)
        return placement.is_present
    except Exception:
        return False


def called_by_library():
    """Return whether the innermost frame outside JAX and NumPy is the library's."""
    frame = sys._getframe(2)
    while frame is not None and (frame.f_code.co_filename.startswith(JAX) or "numpy" in frame.f_code.co_filename):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(LIBRARY)


class LockStep:
    """A pytest plugin; see the module.

    Args:
        folder: what all ranks reach.
        left_out: beginnings of test names that are for one process, with the reason of each.
        one_in: run the tests whose name's hash divides by it.
        limit_s: how long a test may take.
    """

    def __init__(self, folder, left_out, one_in, limit_s):
        self.folder, self.left_out, self.one_in, self.limit_s = Path(folder), left_out, one_in, limit_s
        self.world = worlds.current()
        self.errors = os.fdopen(os.dup(2), "w")  # pytest takes the other one away
        self.meetings, self.made = 0, 0
        self.start = os.environ.get("RESTART_COUNT", "0")
        self.log = self.folder / "begun"
        self.begun = set(self.log.read_text().splitlines()) if self.log.exists() else set()

    # -- which tests ---------------------------------------------------------------------------------------------------

    def pytest_collection_modifyitems(self, config, items):
        kept, away = [], []
        for item in items:
            out = any(item.nodeid.startswith(name) for name in self.left_out)
            sampled = zlib.crc32(item.nodeid.encode()) % self.one_in == 0
            (kept if sampled and not out and item.nodeid not in self.begun else away).append(item)
        items[:] = kept
        config.hook.pytest_deselected(items=away)
        self.meet("collected", [i.nodeid for i in kept])

    @pytest.fixture
    def tmp_path(self, request):
        folder = self.folder / f"{zlib.crc32(request.node.nodeid.encode()):08x}"
        folder.mkdir(exist_ok=True)
        return folder

    def mktemp(self, basename):
        """Return a folder for all ranks."""
        self.made += 1
        folder = self.folder / f"{basename}_{self.start}_{self.made}"
        folder.mkdir(exist_ok=True)
        return folder

    # -- together ------------------------------------------------------------------------------------------------------

    def meet(self, what, value):
        """Return what every rank gives here; by a way of its own, since the library's may have parted."""
        client = jax._src.distributed.global_state.client
        key = f"lockstep/{self.start}/{self.meetings}"
        self.meetings += 1
        client.key_value_set_bytes(f"{key}/{self.world.rank}", pickle.dumps((what, value)))
        outcomes_text = {}
        for rank in range(self.world.size):
            while rank not in outcomes_text:
                try:
                    outcomes_text[rank] = pickle.loads(client.blocking_key_value_get_bytes(f"{key}/{rank}", 1000))
                except jax.errors.JaxRuntimeError as error:
                    if "DEADLINE_EXCEEDED" not in str(error):
                        raise
        if len({t[0] for t in outcomes_text.values()}) > 1 or (
            what == "collected" and len({str(t) for t in outcomes_text.values()}) > 1
        ):
            raise SystemExit(
                f"the ranks came for {sorted({t[0] for t in outcomes_text.values()})}: they are not in lock step"
            )
        return {rank: t[1] for rank, t in outcomes_text.items()}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item, nextitem):
        if self.world.rank == 0:
            with open(self.log, "a", encoding="utf-8") as file:
                file.write(item.nodeid + "\n")
        random.seed(0)
        np.random.seed(0)
        torch.manual_seed(0)
        faulthandler.dump_traceback_later(self.limit_s, exit=True, file=self.errors)
        result = yield
        faulthandler.cancel_dump_traceback_later()
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        if call.when == "teardown":
            return report
        text = "" if report.outcome == "passed" else str(report.longrepr)[-3000:]
        outcomes_text = self.meet(f"{call.when} of {item.nodeid}", (report.outcome, text))
        outcomes = {rank: outcome for rank, (outcome, _) in outcomes_text.items()}
        if call.when == "call" or set(outcomes.values()) != {"passed"}:
            self.note(item.nodeid, outcomes_text)
        if len(set(outcomes.values())) > 1:
            time.sleep(0.2 if self.world.rank else 0.6)  # the others have read it
            sys.stdout.flush()
            os._exit(RESTART)
        return report

    def note(self, name, outcomes_text):
        """Write down how a test ended."""
        if self.world.rank == 0:
            with open(self.folder / "ended", "a", encoding="utf-8") as file:
                file.write(json.dumps([name, {r: list(t) for r, t in outcomes_text.items()}]) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True)
    parser.add_argument("--left_out", default="{}")
    parser.add_argument("--one_in", type=int, default=1)
    parser.add_argument("--limit", type=float, default=120.0)
    options, rest = parser.parse_known_args()
    if sbpjax.env.get_world_size() < 2:
        raise SystemExit("started by hand: python -m tests.distributed.foundation starts the ranks")
    deal_devices()
    read_whole_arrays()
    show_all_shards()
    take_locals_for_wholes()
    plugin = LockStep(options.folder, json.loads(options.left_out), options.one_in, options.limit)
    pytest.TempPathFactory.mktemp = lambda _, basename, numbered=True: plugin.mktemp(basename)
    code = pytest.main(["-p", "no:cacheprovider", "-p", "no:faulthandler", "-q", "--no-header", *rest], [plugin])
    plugin.meet("done", None)
    sys.exit(0 if code in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED) else int(code))


if __name__ == "__main__":
    main()
