"""Beam search: keeps the N most probable sequences of each prompt.

Each prompt has N beams, beginnings with the sum of their log-probabilities. A step continues every beam by every token
and keeps the best N that do not stop; those among the best N that stop are finished, and scored by their sum divided
by (number of tokens) ^ `length_penalty`. A prompt is done when no beam can come before the worst of its N finished
ones any more. The devices give the best candidates of a step; what becomes of them is decided here, in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

WORST = -1e9  # a score that loses against every other


class Beams:
    """The beams of some prompts.

    Args:
        prompts: how many, B.
        beams: N, of each.
        new_tokens: the most that come behind a prompt.
        stop: tokens behind which a sequence ends.
        length_penalty: the exponent; above 0 longer sequences are preferred.
        ends: of the tokens of a sequence, how many it has with the one that ends it otherwise; None for none.

    Attributes:
        scores: `(B, N)`, of the beams that go on.
        tokens: `(B, N, L)`, what they have so far.

    Example:
        >>> import numpy as np
        >>> from sbpjax.models.beams import Beams
        >>> beams = Beams(1, 2, new_tokens=1, stop=(), length_penalty=1.0)
        >>> order = beams.advance(np.log([[0.5, 0.3, 0.1, 0.1]]), np.array([[3, 1, 0, 2]]), vocab=4)
        >>> beams.best()
        [[3]]
    """

    def __init__(
        self,
        prompts: int,
        beams: int,
        new_tokens: int,
        stop: Collection[int],
        length_penalty: float,
        ends: Callable[[list[int]], int | None] | None = None,
    ):
        self.new_tokens, self.stop, self.penalty, self.ends = new_tokens, list(stop), length_penalty, ends
        self.tokens = np.zeros((prompts, beams, 0), np.int64)
        self.scores = np.full((prompts, beams), WORST, np.float32)
        self.scores[:, 0] = 0  # in the beginning all beams of a prompt are the same
        self.finished: list[list[tuple[float, list[int]]]] = [[] for _ in range(prompts)]
        self.open = np.ones(prompts, bool)

    @property
    def candidates(self) -> int:
        """How many continuations of a prompt a step needs, so that N of them go on."""
        return max(2, 1 + len(self.stop)) * self.tokens.shape[1]

    def advance(self, values: np.ndarray, places: np.ndarray, vocab: int) -> np.ndarray:
        """Take the best continuations of a step.

        Args:
            values: `(B, candidates)` sums of log-probabilities, falling.
            places: `(B, candidates)`: number of the beam times `vocab`, plus the token.
            vocab: V.

        Returns:
            ``(B, N)``: which beam each one of the next step continues.
        """
        count, length = self.tokens.shape[1], self.tokens.shape[2] + 1
        parents, tokens = places // vocab, places % vocab
        stops = np.isin(tokens, self.stop) | (length == self.new_tokens)
        longer = np.concatenate([np.take_along_axis(self.tokens, parents[..., None], 1), tokens[..., None]], -1)
        if self.ends is not None:
            stops |= np.array([[self.ends(row) is not None for row in rows] for rows in longer.tolist()])
        for prompt in np.flatnonzero(self.open):
            ended = [
                (float(values[prompt, i]) / length**self.penalty, longer[prompt, i].tolist())
                for i in range(count)
                if stops[prompt, i]
            ]
            kept = sorted([*self.finished[prompt], *ended], key=lambda one: -one[0])
            self.finished[prompt] = kept[:count]
        values = values + stops * WORST
        going = np.argsort(-values, axis=1, kind="stable")[:, :count]
        self.tokens = np.take_along_axis(longer, going[..., None], 1)
        self.scores = np.take_along_axis(values, going, 1).astype(np.float32)
        for prompt in np.flatnonzero(self.open):
            if len(self.finished[prompt]) == count:
                hope = float(self.scores[prompt, 0]) / length**self.penalty
                self.open[prompt] = hope > self.finished[prompt][-1][0]
        return np.take_along_axis(parents, going, 1)

    @property
    def is_done(self) -> bool:
        """Whether nothing can change any more."""
        return not self.open.any() or self.tokens.shape[2] == self.new_tokens

    def best(self) -> list[list[int]]:
        """Return the best finished sequence of each prompt."""
        return [found[0][1] for found in self.finished]
