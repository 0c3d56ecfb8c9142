"""`%%ranks` cell magic: run a notebook cell as a program of several processes, started by the launcher.

    %load_ext sbpjax

    %%ranks 4
    import sbpjax as flow
    x = flow.ones(8, placement=flow.placement.all("cpu"), sbp=flow.sbp.split(0))
    print(flow.env.get_rank(), x.sum().item())

    [rank 0] 0 8.0
    [rank 1] 1 8.0
    ...

Each process runs the cell from its first line, without the notebook's variables. Its output is prefixed
with its rank. When one fails, the cell fails with the traceback of that rank alone, not those of the ranks that fail as
a consequence.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shlex
import signal
import tempfile
import threading
from typing import Any

from sbpjax.errors import DistributedError, RankFailedError

from . import launch
from .rank_processes import Rank, is_connected_message, signal_name

# Where an error begins that may be that of a rank, or one in the wake of another rank's: a traceback, or jaxlib's log
# that its coordination service ended (jaxlib 0.10.2).
_TRACE = re.compile(r"Traceback \(most recent call last\)|^[EF]\d{4} .*(coordination|distributed) service")
_FILE = "cell.py"


def load_ipython_extension(shell: Any) -> None:
    """Give a notebook the cell magic ``%%ranks``: ``%load_ext sbpjax`` calls this.

    Args:
        shell: IPython's shell.

    Example:
        >>> sbpjax.load_ipython_extension(get_ipython())  # doctest: +SKIP
    """
    shell.register_magic_function(ranks, "cell", "ranks")


class _Parser(argparse.ArgumentParser):
    """Parser whose errors end the cell and not the kernel."""

    def error(self, message: str) -> None:  # type: ignore[override]
        fix = "%%ranks 4, or %%ranks 4 --cpu_devices 2 --timeout 60 --limit 300"
        raise DistributedError("%%ranks", message, "a cell begins with its number of ranks", fix)


def _parser() -> argparse.ArgumentParser:
    p = _Parser("%%ranks", description="Run this cell on several processes.", add_help=False)
    p.add_argument("ranks", type=int, help="how many processes")
    p.add_argument("--cpu_devices", type=int, default=1, help="virtual CPU devices of each process")
    p.add_argument("--timeout", type=float, default=None, help="seconds that ranks wait for each other (600)")
    p.add_argument("--limit", type=float, default=None, help="seconds after which the cell is ended")
    return p


def ranks(line: str, cell: str) -> None:
    """Run a cell on several processes: ``%%ranks 4 [--cpu_devices 1] [--timeout 600] [--limit SECONDS]``.

    Args:
        line: the options.
        cell: the program, in Python without magics; the value of a last expression is shown, as in any cell.

    Raises:
        DistributedError: the options are wrong.
        RankFailedError: a rank failed, or the cell took longer than ``--limit``; the other ranks were ended.
        KeyboardInterrupt: the cell was interrupted; all ranks were.
    """
    given = _parser().parse_args(shlex.split(line))
    if given.ranks < 1:
        raise DistributedError("%%ranks", f"{given.ranks} ranks", "a cell runs on at least one rank", "%%ranks 2")
    source = _with_last_value(cell)
    with tempfile.TemporaryDirectory(prefix="sbpjax-cell-") as folder:
        file = os.path.join(folder, _FILE)
        with open(file, "w", encoding="utf-8") as out:
            out.write(source)
        command = ["--nproc_per_node", str(given.ranks), "--master_port", "0", "--cpu_devices", str(given.cpu_devices)]
        command += [] if given.timeout is None else ["--timeout", str(given.timeout)]
        launcher = _CellLauncher(launch.parser().parse_args([*command, file]), given.limit)
        launcher.run()
    if launcher.error is not None:
        raise launcher.error
    if launcher.signal is not None:
        raise KeyboardInterrupt


def _with_last_value(cell: str) -> str:
    """Return a cell that shows the value of its last expression; line numbers stay."""
    body = ast.parse(cell, _FILE).body
    if not body or not isinstance(body[-1], ast.Expr) or cell.rstrip().endswith(";"):
        return cell
    last = body[-1]
    lines = cell.encode().splitlines(keepends=True)
    before = b"".join(lines[: last.lineno - 1]) + lines[last.lineno - 1][: last.col_offset]
    text = ast.get_source_segment(cell, last) or ""
    return f"{before.decode()}__import__('sys').displayhook({text}\n)\n"


class _CellLauncher(launch.Launcher):
    """Launcher that keeps tracebacks until the rank that failed first is known.

    Args:
        options: see `launch.parser`.
        limit_s: after how many seconds all ranks are ended.
    """

    def __init__(self, options: argparse.Namespace, limit_s: float | None) -> None:
        # Modules beside the notebook are found, as in the notebook itself.
        path = os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")]))
        super().__init__(options, {"PYTHONPATH": path})
        self.error: RankFailedError | None = None
        self.limit_s = limit_s
        self._folder = os.path.dirname(options.training_script) + os.sep
        self._held: dict[int, list[str]] = {}

    def run(self) -> int:
        """Run until all processes ended, and return the exit code."""
        timer = threading.Timer(self.limit_s, self._end) if self.limit_s is not None else None
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            return super().run()
        finally:
            if timer is not None:
                timer.cancel()

    def _end(self) -> None:
        late = [rank for rank in self.ranks if rank.process.poll() is None]
        names = ", ".join(f"rank {rank.rank}" for rank in late)
        self.error = RankFailedError(
            f"%%ranks {len(self.ranks)} --limit {self.limit_s:g}\n"
            f"  seen: still running: {names}\n"
            "  rule: a cell takes no longer than its limit; its ranks were ended\n"
            "  fix:  a longer --limit; if ranks wait for each other, --timeout names the missing ones"
        )
        self.signal = signal.SIGTERM

    def _pass_on(self, rank: Rank, source: Any, sink: Any, last: Any) -> None:
        if source is rank.process.stdout:
            super()._pass_on(rank, source, sink, last)
            return
        for raw in source:
            rank.lines += 1
            line = raw.decode("utf-8", "replace").rstrip("\n").replace(self._folder, "")
            held = self._held.get(rank.rank)
            if held is None and _TRACE.search(line):
                held = self._held[rank.rank] = []
            if held is not None:
                held.append(line)
            elif not is_connected_message(line):
                last.append(line)
                self._write(rank, sink, [line])
        source.close()
        if rank.process.wait() == 0:  # it was caught, and printed by the program itself
            self._write(rank, sink, self._held.pop(rank.rank, []))

    def _write(self, rank: Rank, sink: Any, lines: list[str]) -> None:
        with self._lock:
            sink.write("".join(f"[rank {rank.rank}] {line}\n" for line in lines))
            sink.flush()

    def report(self, rank: Rank) -> None:
        rank.last_lines()  # waits for the readers
        code = rank.process.returncode
        how = f"exited with code {code}" if code > 0 else f"was killed by {signal_name(-code)}"
        trace = self._held.get(rank.rank) or [f"its output is above, after [rank {rank.rank}]"]
        self.error = RankFailedError(f"rank {rank.rank} of {len(self.ranks)} {how}\n" + "\n".join(trace))

    def log(self, text: str) -> None:
        """Print nothing: the error of the cell contains the message."""
