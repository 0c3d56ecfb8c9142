"""Run the programs on sbpjax in one process: those of several ranks on threads that stand for the ranks."""

import json
import runpy
import sys

from tests.compat_programs import record

import sbpjax

# A pipeline's driver runs in one thread of each process. What this one shows is the same on every rank, so it runs as
# one process that owns the four devices.
ONE_PROCESS = {"global_four/215_pipeline_graph"}


def run(name, path):
    """Run a program as a script whose `oneflow` is sbpjax; return for each rank the `[name, value]` pairs it showed."""
    count = 1 if name in ONE_PROCESS else record.ranks(path)
    lines = [[] for _ in range(count)]
    code = compile(path.read_text(), str(path), "exec")

    def program():
        if count > 1:
            exec(code, {"__name__": "__main__", "__file__": str(path)})
        else:
            runpy.run_path(str(path), run_name="__main__")

    sys.path.insert(0, str(record.FOLDER))
    try:
        with sbpjax.mock_oneflow.enable():
            import shown  # by the name under which the programs import it

            shown.sink = lambda line: lines[sbpjax.env.get_rank()].append(json.loads(line))
            sbpjax.manual_seed(0)
            if name in ONE_PROCESS:
                program()
            else:
                sbpjax.simulate(ranks=count)(program)()
    finally:
        sys.path.remove(str(record.FOLDER))
        sbpjax.set_default_dtype(sbpjax.float32)
    return lines
