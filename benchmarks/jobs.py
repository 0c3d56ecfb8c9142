"""Simulated training jobs: goodput by checkpoint interval, by policy, and by the time of a restart.

The job has the published rate of Llama 3 405B: 419 interruptions in 54 days on 16,384 GPUs, 2,048 hosts (Grattafiori et
al., "The Llama 3 Herd of Models", section 3.3.4, where 78 % of them are put down to hardware). Other figures are
assumptions, of which the tables vary those that matter; `sbpjax.plan.Job` lists them.

    python -m benchmarks.jobs
"""

from __future__ import annotations

import dataclasses
import statistics

from sbpjax.plan import Job, simulate

RUNS = 5
LLAMA = Job(hosts=2048, days=54, failures_per_day=419 / 54, hardware_share=0.78, policy="spare", spares=64, replica=16)


def row(name: str, job: Job) -> str:
    """Return a line of a table: goodput and the largest losses, means of `RUNS` seeds."""
    found = [simulate(job, seed) for seed in range(RUNS)]
    causes = sorted({cause for f in found for cause in f.lost})
    lost = {c: statistics.mean(f.lost.get(c, 0.0) for f in found) for c in causes}
    text = ", ".join(f"{c} {share:.1%}" for c, share in sorted(lost.items(), key=lambda x: -x[1]) if share >= 5e-4)
    return f"| {name} | {statistics.mean(f.goodput for f in found):.1%} | {text} |"


def table(title: str, jobs: dict[str, Job]) -> None:
    """Print a table."""
    print(f"\n| {title} | goodput | lost |\n|---|---|---|")
    for name, job in jobs.items():
        print(row(name, job))


def main() -> None:
    """Print the tables."""
    change = dataclasses.replace
    table(
        "checkpoint every",
        {f"{s // 60} min": change(LLAMA, checkpoint_interval_s=float(s)) for s in (300, 600, 1200, 1800, 3600, 7200)},
    )
    base = change(LLAMA, checkpoint_interval_s=600.0)
    table(
        "policy",
        {
            "wait for repair": change(base, policy="wait"),
            "shrink by replicas of 16 hosts, grow at a checkpoint": change(base, policy="shrink"),
            "2 spare hosts": change(base, spares=2),
            "64 spare hosts": base,
        },
    )
    table("detect and restart", {f"{d} + {r} s": change(base, detect_s=float(d), restart_s=float(r))
                                 for d, r in ((10, 50), (60, 300), (60, 900), (600, 900))})  # fmt: skip
    table(
        "stragglers, 1.5 times slower for 30 min",
        {f"{n} a day": change(base, stragglers_per_day=float(n)) for n in (0, 2, 8)},
    )
    table("hosts, at the same rate per host", {
        f"{n:,}": change(base, hosts=n, failures_per_day=base.failures_per_day * n / 2048, spares=n // 32)
        for n in (512, 2048, 8192, 32768)
    })  # fmt: skip


if __name__ == "__main__":
    main()
