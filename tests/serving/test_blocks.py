"""Blocks of a pool: taken, given back, shared by prompts that begin alike; never two owners that do not agree."""

import random

from sbpjax.serving.paged import Blocks


def test_the_same_beginning_is_read_once():
    blocks = Blocks(9, size=4)
    mine, known = blocks.take([1, 2, 3, 4, 5], 8)
    assert known == 0 and len(mine) == 2 and 0 not in mine
    assert blocks.take([1, 2, 3, 4, 9], 8)[1] == 0  # not read yet
    blocks.publish([1, 2, 3, 4, 5], mine)
    others, known = blocks.take([1, 2, 3, 4, 9], 8)
    assert known == 4 and others[0] == mine[0] and others[1] != mine[1]
    # At least one token is left to be read: its logits are wanted.
    assert blocks.take([1, 2, 3, 4], 4)[1] == 0


def test_too_few_blocks_take_none():
    blocks = Blocks(4, size=2)
    mine, _ = blocks.take([1], 4)
    assert blocks.take([2], 4) is None and blocks.used == 2
    blocks.release(mine)
    assert blocks.used == 0 and len(blocks.take([2], 6)[0]) == 3


def test_many_that_come_and_go():
    rnd, blocks, live = random.Random(0), Blocks(33, size=4), []
    for _ in range(3000):
        if live and rnd.random() < 0.5:
            prompt, mine = live.pop(rnd.randrange(len(live)))
            if rnd.random() < 0.7:
                blocks.publish(prompt, mine)
            blocks.release(mine)
        else:
            prompt = [rnd.randrange(2) for _ in range(rnd.randint(1, 20))]
            found = blocks.take(prompt, len(prompt) + 4)
            if found is not None:
                mine, known = found
                assert known < len(prompt) and len(mine) == blocks.needed_blocks(len(prompt) + 4) == len(set(mine))
                live.append((prompt, mine))
        # A block that two have holds what both begin with.
        owners = {}
        for prompt, mine in live:
            for i, block in enumerate(mine):
                owners.setdefault(block, []).append(tuple(prompt[: 4 * (i + 1)]))
        assert 0 not in owners and blocks.used == len(owners)
        assert all(len(set(held)) == 1 for held in owners.values())
    for _, mine in live:
        blocks.release(mine)
    assert blocks.used == 0
