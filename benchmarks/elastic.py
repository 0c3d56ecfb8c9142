"""Rendezvous and failure broadcast of many simulated hosts: ``python -m benchmarks.elastic [--hosts 1000]``.

Agents without devices, over loopback sockets, with host 0, the leader, in a process of its own so that its CPU time
is counted alone. Prints the time until all hosts train, and the CPU time of both processes for it, which a busy machine
stretches; the cores that the leader uses while it hears all hosts; and the time from a rank's failure, and from a
host's death, to the stop on the last host.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import resource
import sys
import time
from multiprocessing import get_context

KEY = b"k" * 32
WATCHED_S = 10.0
STARTED_AT_ONCE = 20  # they share one process


class CountedRanks:
    """Ranks that are a flag."""

    def __init__(self, counts):
        self.counts, self.failed, self.is_running, self.epoch = counts, None, False, None

    def start(self, epoch, host):
        self.failed, self.is_running, self.epoch = None, True, epoch
        self.counts["started"] += 1

    def extend(self, until):
        pass

    def keep_standbys(self):
        pass

    def poll(self):
        return self.failed, self.is_running

    def save(self):
        self.is_running = False

    async def stop(self, grace_s):
        if self.is_running:
            self.counts["stopped"] += 1
        self.is_running = False

    def free_port(self):
        return 29500


def make_agents(nodes, hosts, ports, counts, silence_s):
    from sbpjax.distributed.elastic.agent import Agent
    from sbpjax.distributed.elastic.settings import Settings

    seeds = {node: f"127.0.0.1:{port}" for node, port in enumerate(ports)}
    options = {"min_hosts": hosts - 1, "max_hosts": hosts, "max_restarts": 9, "silence_s": silence_s}
    options |= {"join_wait_s": 30.0, "poll_s": 0.5}
    return [
        Agent(
            Settings(node=n, address=seeds[n], seeds=seeds, key=KEY, bind="127.0.0.1", **options),
            CountedRanks(counts),
            lambda text: None,
        )
        for n in nodes
    ]


def lead(hosts, ports, silence_s, pipe):
    """Run host 0 and answer questions for its CPU time."""
    counts = {"started": 0, "stopped": 0}

    async def main():
        (agent,) = make_agents([0], hosts, ports, counts, silence_s)
        task = asyncio.create_task(agent.run())
        while not task.done():
            await asyncio.sleep(0.05)
            if pipe.poll():
                pipe.recv()
                used = resource.getrusage(resource.RUSAGE_SELF)
                pipe.send((used.ru_utime + used.ru_stime, counts["started"], counts["stopped"]))

    asyncio.run(main())


async def measure(hosts, ports, silence_s, pipe):
    found = {}

    def ask():
        pipe.send(None)
        return pipe.recv()

    async def until(name, wanted, begun):
        while counts[name] < wanted or ask()[1 if name == "started" else 2] < (wanted > 0):
            await asyncio.sleep(0.02)
            if time.monotonic() > begun + 120:
                raise SystemExit(f"{name}: {counts[name]} of {wanted} after 120 s")
        return time.monotonic() - begun

    counts = {"started": 0, "stopped": 0}
    agents = make_agents(range(1, hosts), hosts, ports, counts, silence_s)
    begun, used = time.monotonic(), time.process_time()
    tasks = []
    for agent in agents:
        tasks.append(asyncio.create_task(agent.run()))
        if len(tasks) % STARTED_AT_ONCE == 0:
            await asyncio.sleep(0.02)
    found["meet_s"] = await until("started", hosts - 1, begun)
    cpu, wall = ask()[0], time.monotonic()
    found |= {"meet_followers_cpu_s": time.process_time() - used, "meet_leader_cpu_s": cpu}
    await asyncio.sleep(WATCHED_S)
    found["leader_cores"] = (ask()[0] - cpu) / (time.monotonic() - wall)
    begun = time.monotonic()
    agents[hosts // 2].ranks.failed = (agents[hosts // 2].ranks.epoch.first_rank(hosts // 2), 1)
    found["rank_failure_told_s"] = await until("stopped", hosts - 1, begun)
    found["all_start_again_s"] = await until("started", 2 * (hosts - 1), begun)
    begun, counts["stopped"] = time.monotonic(), 0
    agents[-1].ranks.is_running = False
    tasks[-1].cancel()
    found["host_death_told_s"] = await until("stopped", hosts - 2, begun)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return found


def main():
    """Measure, and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--silence_s", type=float, default=10.0)
    given = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8 * given.hosts + 1000), hard))
    sys.path.insert(0, os.getcwd())
    from tests.distributed.elastic.simulated import free_ports

    ports = free_ports(given.hosts)
    mine, theirs = get_context("fork").Pipe()
    leader = get_context("fork").Process(target=lead, args=(given.hosts, ports, given.silence_s, theirs), daemon=True)
    leader.start()
    time.sleep(1.0)
    found = asyncio.run(measure(given.hosts, ports, given.silence_s, mine))
    leader.terminate()
    facts = {
        "hosts": given.hosts,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
    }
    print(json.dumps(facts | {name: round(value, 3) for name, value in found.items()}))


if __name__ == "__main__":
    main()
