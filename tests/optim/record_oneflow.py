"""Record what OneFlow computes in the sweeps over optimizers and schedules; run with OneFlow 0.9, from any folder.

    python tests/optim/record_oneflow.py            # writes tests/optim/data/oneflow.json

A fact is what `sweep_cases.run_eager` returns, rounded to seven digits, or the name of the error raised. A graph's is
kept only where it differs from eager by more than 1e-6.
"""

import json
import os
import subprocess
import sys
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import oneflow

from tests.optim import schedule_cases, sweep_cases

warnings.simplefilter("ignore")


def find(name):
    return oneflow.one_embedding.Ftrl if name == "Ftrl" else getattr(oneflow.optim, name)


def rounded_attempt(run):
    return rounded(schedule_cases.attempt(run))


def rounded(value):
    if isinstance(value, dict):
        return {name: rounded(x) for name, x in value.items()}
    if isinstance(value, list):
        return [rounded(x) for x in value]
    return float(f"{value:.7g}") if isinstance(value, float) else value


def near(a, b):
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(near, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or abs(a - b) <= 1e-6 * max(1, abs(b))
    return a == b


def optimizer(case):
    eager = rounded_attempt(
        lambda: sweep_cases.run_eager(
            case, find, lambda a: oneflow.nn.Parameter(oneflow.tensor(a)), lambda a: oneflow.tensor(a)
        )
    )
    graph = rounded_attempt(lambda: sweep_cases.run_graph([case], oneflow, find)[0])
    return {"eager": eager} if near(eager, graph) else {"eager": eager, "graph": graph}


def schedule(code):
    eager = rounded_attempt(lambda code=code: schedule_cases.run_eager(code, oneflow, schedules))
    graph = rounded_attempt(lambda code=code: schedule_cases.run_graph([code], oneflow, oneflow.optim.lr_scheduler)[0])
    return {"eager": eager, "graph": graph}


def print_schedules(first):
    """Print the facts of the cases from one on, a line each."""
    for code in schedule_cases.ONEFLOW[first:]:
        print("fact", json.dumps(schedule(code)), flush=True)


def schedules():
    """Return the facts of all schedules; a graph that ends or holds up its process is recorded as "abort"."""
    found, schedules = [], oneflow.optim.lr_scheduler
    while len(found) < len(schedule_cases.ONEFLOW):
        command = [sys.executable, os.path.abspath(__file__), str(len(found))]
        try:
            child = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=100)
            out, failed = child.stdout, child.returncode != 0
        except subprocess.TimeoutExpired as hung:
            out, failed = hung.stdout or b"", True
        found += [json.loads(line[5:]) for line in out.decode().splitlines() if line.startswith("fact ")]
        if failed and len(found) < len(schedule_cases.ONEFLOW):
            code = schedule_cases.ONEFLOW[len(found)]
            eager = rounded_attempt(lambda code=code: schedule_cases.run_eager(code, oneflow, schedules))
            found.append({"eager": eager, "graph": "abort"})
    return dict(zip(schedule_cases.ONEFLOW, found))


def main():
    facts = {
        "version": f"oneflow {oneflow.__version__}",
        "optimizers": {name: optimizer(case) for name, case in sweep_cases.ONEFLOW.items()},
        "schedules": schedules(),
    }
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "oneflow.json")
    lines = [f'"version": {json.dumps(facts["version"])}']
    for kind in ("optimizers", "schedules"):
        rows = ",\n".join(f"{json.dumps(k)}:{json.dumps(v, separators=(',', ':'))}" for k, v in facts[kind].items())
        lines.append(f'"{kind}": {{\n{rows}\n}}')
    with open(path, "w") as file:
        file.write("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    print_schedules(int(sys.argv[1])) if sys.argv[1:] else main()
