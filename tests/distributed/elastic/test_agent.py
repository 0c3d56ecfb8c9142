"""Agents of a job in one process: they meet, lose and gain hosts, and never train in two epochs at once."""

import asyncio
import random
import time

import pytest

from tests.distributed.elastic.simulated import Job, Network, overlaps, run


async def _life():
    job = Job(4, max_restarts=1)
    job.start(0, 1, 2, 3)
    try:
        epoch = await job.trains([0, 1, 2, 3])
        job.agents[2].ranks.fail(5)
        epoch = await job.trains([0, 1, 2, 3], after=epoch)
        leader = next(node for node, agent in job.agents.items() if agent.leader is not None)
        await job.kill(3 if leader != 3 else 2)
        rest = set(job.agents)
        epoch = await job.trains(rest, after=epoch)
        await job.kill(leader)
        epoch = await job.trains(rest - {leader}, after=epoch)
        job.start(*({0, 1, 2, 3} - set(job.agents)))
        epoch = await job.trains([0, 1, 2, 3], after=epoch)
        sizes = {(a.ranks.epoch.world_size, a.ranks.epoch.master, a.ranks.epoch.failures) for a in job.agents.values()}
        assert sizes == {(4, "127.0.0.1:29500", 1)}
        for agent in job.agents.values():
            agent.ranks.finish()
        assert await job.codes() == dict.fromkeys(range(4), 0)
        assert not overlaps(job.log)
    finally:
        await job.end()


def test_a_job_loses_a_rank_a_host_and_its_leader_and_grows_again():
    run(_life())


async def _failures():
    job = Job(2, max_restarts=1)
    job.start(0, 1)
    try:
        epoch = await job.trains([0, 1])
        job.agents[1].ranks.fail(3)
        await job.trains([0, 1], after=epoch)
        job.agents[0].ranks.fail(-9)
        assert await job.codes() == {0: 137, 1: 137}
    finally:
        await job.end()


def test_the_job_ends_with_the_code_of_one_failure_too_many():
    run(_failures())


async def _request():
    job = Job(2, max_restarts=1)
    job.start(0, 1)
    try:
        epoch = await job.trains([0, 1])
        for _ in range(2):  # a restart that a rank requests does not count
            job.agents[1].ranks.fail(75)
            epoch = await job.trains([0, 1], after=epoch)
        assert job.agents[0].ranks.epoch.failures == 0
        assert {run[1] for run in job.log} == {1, 2} and not overlaps(job.log)
    finally:
        await job.end()


def test_a_rank_may_request_a_restart():
    run(_request())


async def _stall():
    job = Job(3)
    job.start(0, 1, 2)
    try:
        epoch = await job.trains([0, 1, 2])
        time.sleep(1.5)  # of all agents; their leases take 0.8 s
        await job.trains([0, 1, 2], after=epoch)
        assert all(agent.ranks.epoch.failures == 0 for agent in job.agents.values())
        assert not overlaps(job.log)
    finally:
        await job.end()


def test_ranks_whose_agent_stood_still_are_no_failures():
    run(_stall())


async def _leave(nodes, stays):
    job = Job(3)
    job.start(0, 1, 2)
    try:
        epoch = await job.trains([0, 1, 2])
        for node in nodes:
            job.agents[node].leave()
        for node in nodes:
            assert await asyncio.wait_for(job.tasks.pop(node), 10) == 75
            del job.agents[node]
        if stays:
            await job.trains(stays, after=epoch)
        assert not overlaps(job.log)
    finally:
        await job.end()


@pytest.mark.parametrize("nodes, stays", [([2], {0, 1}), ([0], {1, 2}), ([0, 1], {2}), ([0, 1, 2], set())])
def test_hosts_that_are_sent_sigterm_leave_and_the_others_go_on(nodes, stays):
    run(_leave(nodes, stays))


async def _halves():
    network = Network()
    job = Job(4, network=network)
    job.start(0, 1, 2, 3)
    try:
        epoch = await job.trains([0, 1, 2, 3])
        network.separate({0, 1}, {2, 3})
        epoch = await job.trains([0, 1], after=epoch)
        await asyncio.sleep(3.0)
        await job.trains([0, 1])  # and still not the others
        network.heal()
        await job.trains([0, 1, 2, 3], after=epoch)
        assert not overlaps(job.log)
    finally:
        await job.end()


def test_of_two_halves_the_one_with_the_lowest_host_goes_on():
    run(_halves())


async def _fuzz(seed, rounds):
    chance, network = random.Random(seed), Network()
    job = Job(5, silence_s=1.0, join_wait_s=0.2, max_restarts=10**6, network=network, keeps_state=True)
    job.start(*range(5))
    try:
        await job.trains(range(5))
        for _ in range(rounds):
            action = chance.choice(["separate", "kill", "fail", "heal", "start"])
            if action == "separate":
                side = set(chance.sample(range(5), chance.randint(1, 4)))
                network.separate(side, set(range(5)) - side)
            elif action == "kill" and len(job.agents) > 2:
                await job.kill(chance.choice(sorted(job.agents)))
            elif action == "fail":
                ranks = job.agents[chance.choice(sorted(job.agents))].ranks
                if ranks.running:
                    ranks.fail(1)
            elif action == "heal":
                network.heal()
            job.start(*(set(range(5)) - set(job.agents) if action == "start" else ()))
            await asyncio.sleep(chance.uniform(0.0, 1.5))
        network.heal()
        job.start(*(set(range(5)) - set(job.agents)))
        await job.trains(range(5))
    finally:
        await job.end()
    assert not overlaps(job.log), f"seed {seed}: {overlaps(job.log)[:3]}"
    return {run[1] for run in job.log}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(1, 21))])
def test_epochs_never_overlap_whatever_fails(seed):
    rounds = 8 if seed == 0 else 30
    assert len(run(_fuzz(seed, rounds), limit_s=30 + 3 * rounds)) > 2
