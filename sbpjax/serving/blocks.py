"""Block allocator of the paged key-value cache, with reference counts and prefix sharing.

blocks = Blocks(9, size=4)
mine, known = blocks.take([1, 2, 3, 4, 5], tokens=8)        # two blocks, nothing known yet
blocks.publish([1, 2, 3, 4, 5], mine)                       # block 0 of the prompt is full: others may read it
others, known = blocks.take([1, 2, 3, 4, 9], tokens=8)      # the same first block; known == 4 tokens
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence


class Blocks:
    """Blocks of a pool; block 0 has no owner.

    Args:
        count: the number of blocks, block 0 included.
        size: tokens in each.
    """

    def __init__(self, count: int, size: int):
        self.count, self.size = count, size
        self._free = list(range(count - 1, 0, -1))
        self._users: dict[int, int] = {}
        self._of: dict[tuple, int] = {}  # all tokens from the first to the end of a block: that block
        self._holds: dict[int, tuple] = {}
        self._idle: OrderedDict[int, None] = OrderedDict()  # unused, but with known contents; the longest idle first

    @property
    def used(self) -> int:
        """Number of blocks in use."""
        return len(self._users)

    def needed_blocks(self, tokens: int) -> int:
        """Return the number of blocks for a number of tokens."""
        return -(-tokens // self.size)

    def take(self, prompt: Sequence[int], tokens: int) -> tuple[list[int], int] | None:
        """Return blocks for a sequence, and how many of its first tokens are in them already; None if too few are left.

        Args:
            prompt: its first tokens; at least one of them remains to be computed.
            tokens: its maximum number of tokens.
        """
        known: list[int] = []
        for end in range(self.size, len(prompt), self.size):
            block = self._of.get(tuple(prompt[:end]))
            if block is None:
                break
            known.append(block)
        more = self.needed_blocks(tokens) - len(known)
        spare = len(self._free) + sum(block not in known for block in self._idle)
        if more > spare:
            return None
        for block in known:
            self._use(block)
        made = []
        for _ in range(more):
            block = self._free.pop() if self._free else self._forget()
            self._use(block)
            made.append(block)
        return [*known, *made], len(known) * self.size

    def publish(self, prompt: Sequence[int], blocks: Sequence[int]) -> None:
        """Let other sequences read the full blocks of a prompt that was read."""
        for i in range(len(prompt) // self.size):
            key = tuple(prompt[: (i + 1) * self.size])
            if key not in self._of and blocks[i] not in self._holds:
                self._of[key], self._holds[blocks[i]] = blocks[i], key

    def release(self, blocks: Sequence[int]) -> None:
        """Release the blocks of a sequence."""
        for block in blocks:
            self._users[block] -= 1
            if not self._users[block]:
                del self._users[block]
                if block in self._holds:
                    self._idle[block] = None
                else:
                    self._free.append(block)

    def _use(self, block: int) -> None:
        self._idle.pop(block, None)
        self._users[block] = self._users.get(block, 0) + 1

    def _forget(self) -> int:
        block, _ = self._idle.popitem(last=False)
        del self._of[self._holds.pop(block)]
        return block
