"""Continuous batching: requests join and leave the running batch between decode steps.

    engine = GenerationEngine(model, rows=8, blocks=512)
    with engine:
        stream = engine.submit([1, 15, 7], new_tokens=32)
        for token in stream:
            print(token)

A thread loops: it admits waiting requests as long as there are rows and blocks for all tokens that they may have,
prefills a chunk of prompts, and then decodes one token of every sequence with a complete prompt (chunked prefill). A
chunk is some pieces of equal length, of one prompt or of several short ones: all write their keys before any reads, so
that a piece sees earlier ones of the same prompt. So a long prompt does not stop the others, and no sequence ever waits
for memory that another one holds. A request to a full queue is rejected; `Stream.cancel` removes one. Greedy tokens are
those of `sbpjax.models.generate`.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import BusyError, ServingError
from sbpjax.utils.host import explain_arguments, show_progress

from .paged import SCALARS, Blocks, BlockTables, PagedStep, caches_of, pack_inputs

_OPERATION = "GenerationEngine.submit(...)"


@dataclass(eq=False)
class _Sequence:
    prompt: list[int]
    most: int
    stop: frozenset[int]
    temperature: float
    out: queue.SimpleQueue = field(default_factory=queue.SimpleQueue)
    made: list[int] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    read: int = 0  # tokens whose keys are in the cache
    is_cancelled: bool = False
    on_token: Callable[[], None] | None = None  # called after each token, by the engine's thread

    def put(self, token: Any) -> None:
        self.out.put(token)
        if self.on_token is not None:
            self.on_token()


class Stream:
    """Tokens of one request as a stream; iterating waits for the next one.

    Attributes:
        tokens: the tokens so far.
    """

    def __init__(self, sequence: _Sequence, forget: Callable[[_Sequence], None]):
        self._sequence, self._forget = sequence, forget
        self.tokens: list[int] = []

    def __iter__(self) -> Iterator[int]:
        """Wait for each token.

        Raises:
            ServingError: the engine ended before.
        """
        while True:
            token = self._sequence.out.get()
            if token is None:
                return
            yield self._take_token(token)

    async def __aiter__(self) -> AsyncIterator[int]:
        """Wait for each token, without a thread.

        Raises:
            ServingError: the engine ended before.
        """
        loop, came = asyncio.get_running_loop(), asyncio.Event()

        def on_new_token() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: no reader is left
                loop.call_soon_threadsafe(came.set)

        self._sequence.on_token = on_new_token
        while True:
            came.clear()
            while not self._sequence.out.empty():
                token = self._sequence.out.get_nowait()
                if token is None:
                    return
                yield self._take_token(token)
            await came.wait()

    def _take_token(self, token: Any) -> int:
        if isinstance(token, Exception):
            raise token
        self.tokens.append(token)
        return token

    def cancel(self) -> None:
        """Remove the request from the queue or the batch; its tokens end."""
        self._sequence.is_cancelled = True
        self._forget(self._sequence)

    @property
    def finish_reason(self) -> str:
        """Reason of the end: ``"stop"`` after a stop token, else ``"length"``."""
        made = self._sequence.made
        return "stop" if made and made[-1] in self._sequence.stop else "length"


@explain_arguments
class GenerationEngine:
    """Engine that generates with one model, for many requests at once.

    Args:
        model: a decoder of tokens with caches, as `models.gpt2.GPT2` or `models.llama.Llama`, without sliding window.
        rows: the maximum number of sequences in a batch.
        blocks: the number of blocks of keys and values.
        block: tokens in a block.
        chunk: the number of prompt tokens per prefill step.
        longest: the maximum length of a sequence, prompt included.
        max_queue: the maximum number of waiting requests; further ones are rejected.

    Raises:
        ServingError: an option is out of its range, or the model has no caches.

    Example:
        >>> config = flow.models.gpt2.GPT2Config(vocab_size=11, n_positions=32, n_embd=8, n_layer=1, n_head=2)
        >>> engine = flow.serving.GenerationEngine(flow.models.gpt2.GPT2(config).eval(), rows=2, blocks=9, longest=32)
        >>> with engine:
        ...     len(list(engine.submit([1, 2, 3], new_tokens=4)))
        4
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        rows: int = 8,
        blocks: int = 256,
        block: int = 16,
        chunk: int = 64,
        longest: int = 1024,
        max_queue: int = 256,
    ):
        operation = "GenerationEngine(...)"
        sizes = {
            "rows": rows,
            "blocks": blocks,
            "block": block,
            "chunk": chunk,
            "longest": longest,
            "max_queue": max_queue,
        }
        wrong = [name for name, n in sizes.items() if n < (2 if name in ("blocks", "chunk") else 1)]
        if wrong:
            seen = ", ".join(f"{name}={sizes[name]}" for name in wrong)
            raise ServingError(
                operation, seen, "sizes are positive; a pool has two blocks, a chunk two tokens", "leave them out"
            )
        config = getattr(model, "config", None)
        if hasattr(model, "encode") or getattr(config, "sliding_window", None) is not None:
            rule = "each token reads all tokens before it, and nothing else"
            raise ServingError(
                operation, f"a {type(model).__name__} with an encoder or a window", rule, "models.generate(...)"
            )
        known = getattr(config, "n_positions", None) or getattr(config, "max_position_embeddings", None) or longest
        self.longest = min(longest, known)
        self._rows, self._chunk, self._max_queue = rows, chunk, max_queue
        self._blocks = Blocks(blocks, block)
        self._model, tables = model.eval(), BlockTables()
        self._where = _replicated_layout(model, operation)
        self._caches = caches_of(model, blocks, block, tables)
        # A graph for each shape of a call, and few of them, since all are compiled before the first request: many or
        # few rows, one or several pieces of prompts, long or short tables.
        self._width = self._blocks.needed_blocks(self.longest)
        self._piece = max(2, chunk // 4)
        self._widths = sorted({max(1, self._width // 4), self._width})
        self._heights = sorted({1, max(1, rows // 4), max(1, rows // 2), rows})  # a lone one waits for no empty rows
        self._pieces = sorted({1, -(-chunk // self._piece)})
        shapes = [(n, self._piece, m) for n in self._pieces for m in self._widths]
        shapes += [(n, 1, m) for n in self._heights for m in self._widths]
        self._graphs = {shape: PagedStep(model, self._caches, tables, block, shape[1]) for shape in shapes}
        self._seeds = np.random.default_rng(flow.initial_seed())
        if not len(self._caches):
            raise ServingError(
                operation, f"a {type(model).__name__}", "a model has attention with caches", "models.gpt2.GPT2"
            )
        self._waiting: deque[_Sequence] = deque()
        self._active: list[_Sequence] = []
        self._change = threading.Condition()
        self._ends = False
        self._thread: threading.Thread | None = None
        self._due: list[tuple[_Sequence, Any]] = []  # tokens that were made and not handed out
        self._steps = self._tokens = 0

    # -- requests ------------------------------------------------------------------------------------------------------

    def submit(
        self, prompt: Sequence[int], new_tokens: int, *, stop: Sequence[int] = (), temperature: float = 0.0
    ) -> Stream:
        """Submit a prompt, and return the stream of its continuation.

        Args:
            prompt: token numbers, at least one.
            new_tokens: the maximum number of new tokens.
            stop: tokens after which it ends.
            temperature: logits are divided by it; 0 is greedy.

        Returns:
            The stream of tokens.

        Raises:
            BusyError: the queue is full.
            ServingError: the request does not fit the engine.
        """
        prompt = [int(token) for token in prompt]
        total = len(prompt) + new_tokens
        vocab = getattr(getattr(self._model, "config", None), "vocab_size", None)
        if not prompt or new_tokens < 1 or temperature < 0:
            seen = f"{len(prompt)} tokens, new_tokens={new_tokens}, temperature={temperature}"
            raise ServingError(
                _OPERATION, seen, "a prompt has a token, and at least one comes after it", "new_tokens=1"
            )
        if vocab is not None and not all(0 <= token < vocab for token in prompt):
            rule = f"tokens are numbers from 0 to {vocab - 1}"
            raise ServingError(
                _OPERATION, f"tokens from {min(prompt)} to {max(prompt)}", rule, "the model's own tokenizer"
            )
        if total > self.longest or self._blocks.needed_blocks(total) > self._blocks.count - 1:
            most = min(self.longest, (self._blocks.count - 1) * self._blocks.size)
            seen = f"{len(prompt)} tokens and {new_tokens} new ones"
            raise ServingError(
                _OPERATION,
                seen,
                f"a sequence has at most {most} tokens here",
                f"new_tokens={max(most - len(prompt), 1)}",
            )
        sequence = _Sequence(prompt, new_tokens, frozenset(stop), float(temperature))
        with self._change:
            if self._ends or self._thread is None:
                raise ServingError(
                    _OPERATION, "an engine that does not run", "it runs within a with", "with engine: ..."
                )
            if len(self._waiting) >= self._max_queue:
                seen, rule = f"{len(self._waiting)} requests that wait", f"at most {self._max_queue} wait"
                raise BusyError(_OPERATION, seen, rule, "retry later, or max_queue=")
            self._waiting.append(sequence)
            self._change.notify()
        return Stream(sequence, self._forget)

    def _forget(self, sequence: _Sequence) -> None:
        """Free the place in the queue of a cancelled request; one in the batch leaves it at the next step."""
        with self._change:
            if sequence in self._waiting:
                self._waiting.remove(sequence)
                sequence.put(None)

    def statistics(self) -> dict[str, int]:
        """Return statistics: running and waiting sequences, blocks in use, bytes of the cache, steps and tokens."""
        return {
            "running": len(self._active),
            "waiting": len(self._waiting),
            "blocks_used": self._blocks.used,
            "blocks": self._blocks.count - 1,
            "cache_bytes": sum(cache.bytes for cache in self._caches),
            "steps": self._steps,
            "tokens": self._tokens,
        }

    # -- the thread ----------------------------------------------------------------------------------------------------

    def __enter__(self) -> GenerationEngine:
        """Compile the programs for requests, and start the engine."""
        self._ends = False
        count = len(self._graphs)
        with show_progress("compiling the programs of the engine", count) as progress:
            for number, (rows, length, width) in enumerate(self._graphs, 1):
                progress.advance(0, f"program {number} of {count}")
                self._call(np.zeros((rows, length), np.int64), [], width)
                progress.advance(1)
        self._thread = threading.Thread(target=self._run, name="generation", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the engine; running requests get no more tokens."""
        with self._change:
            self._ends = True
            self._change.notify()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        failure: Exception = ServingError(
            _OPERATION, "an engine that was ended", "it runs within a with", "send requests before its end"
        )
        try:
            while True:
                with self._change:
                    while not (self._ends or self._waiting or self._active):
                        self._change.wait()
                    if self._ends:
                        break
                    self._admit()
                self._turn()
                if not self._active:
                    self._deliver_tokens()
        # All waiting readers must get the error, whatever it is.
        except Exception as error:
            failure = error
        with self._change:
            self._ends = True
            self._deliver_tokens()
            for sequence in (*self._active, *self._waiting):
                sequence.put(failure)
            for sequence in self._active:
                self._blocks.release(sequence.blocks)
            self._active.clear()
            self._waiting.clear()

    def _admit(self) -> None:
        while self._waiting and len(self._active) < self._rows:
            first = self._waiting[0]
            # For all tokens that it may have, so that it never has to wait in the middle.
            found = self._blocks.take(first.prompt, len(first.prompt) + first.most)
            if found is None:
                return
            first.blocks, first.read = found
            self._active.append(first)
            self._waiting.popleft()

    def _turn(self) -> None:
        for sequence in [s for s in self._active if s.is_cancelled]:
            self._finish_sequence(sequence)
        # One chunk for each token of the others; more as long as most of the batch is not there yet.
        is_first = True
        while reading := [s for s in self._active if s.read < len(s.prompt)]:
            if not is_first and 2 * len(reading) <= len(self._active):
                break
            self._read(reading)
            is_first = False
        writing = [s for s in self._active if s.read >= len(s.prompt) and s.made]
        if writing:
            self._write(writing)

    def _read(self, reading: list[_Sequence]) -> None:
        """Prefill the next pieces of some prompts, of the first ones if they do not all fit."""
        size = self._piece
        pieces = [(s, at, s.prompt[at : at + size]) for s in reading for at in range(s.read, len(s.prompt), size)]
        del pieces[self._pieces[-1] :]
        tokens = np.zeros((next(n for n in self._pieces if n >= len(pieces)), size), np.int64)
        for row, (_, _, part) in enumerate(pieces):
            tokens[row, : len(part)] = part
        found = self._call(tokens, [(s, at, len(part)) for s, at, part in pieces])
        for (sequence, at, part), token in zip(pieces, found):
            sequence.read = at + len(part)
            if sequence.read == len(sequence.prompt):
                self._blocks.publish(sequence.prompt, sequence.blocks)
                self._append_token(sequence, token)

    def _write(self, sequences: list[_Sequence]) -> None:
        tokens = np.zeros((next(n for n in self._heights if n >= len(sequences)), 1), np.int64)
        tokens[: len(sequences), 0] = [s.made[-1] for s in sequences]
        found = self._call(tokens, [(s, s.read, 1) for s in sequences])
        for sequence, token in zip(sequences, found):
            sequence.read += 1
            self._append_token(sequence, token)

    def _call(self, tokens: np.ndarray, rows: list[tuple[_Sequence, int, int]], width: int = 1) -> list[int]:
        """Run one step; each row gets its block table, its number of earlier tokens, and its number of new ones."""
        needed = max((self._blocks.needed_blocks(start + n) for _, start, n in rows), default=width)
        width = next(n for n in self._widths if n >= needed)
        lengths = [(start, n, s.temperature) for s, start, n in rows]
        given = pack_inputs(tokens, lengths, [s.blocks[:width] for s, _, _ in rows], width)
        if any(s.temperature for s, _, _ in rows):
            given[0, tokens.shape[1] + SCALARS - 1] = self._seeds.integers(2**62)
        self._steps += 1
        found: Any = self._graphs[*tokens.shape, width](flow.tensor(given, **self._where))
        self._deliver_tokens()  # the step runs in the meantime
        return found.numpy().tolist()[: len(rows)]

    def _append_token(self, sequence: _Sequence, token: int) -> None:
        sequence.made.append(token)
        self._due.append((sequence, token))
        self._tokens += 1
        if len(sequence.made) >= sequence.most or token in sequence.stop:
            self._finish_sequence(sequence)

    def _finish_sequence(self, sequence: _Sequence) -> None:
        self._active.remove(sequence)
        self._blocks.release(sequence.blocks)
        self._due.append((sequence, None))

    def _deliver_tokens(self) -> None:
        """Deliver tokens to waiting readers; waking many threads takes as long as a step of a small model."""
        due, self._due = self._due, []
        for sequence, token in due:
            sequence.put(token)


def _replicated_layout(model: nn.Module, operation: str) -> dict[str, Any]:
    """Return the layout of the inputs of a call: whole on every rank of the model's placement."""
    places = [p.placement if p.is_global else None for p in model.parameters()]
    if any(place != places[0] for place in places):
        rule = "a token goes through all blocks in one program, so all are on one placement"
        raise ServingError(
            operation, "a model on several placements", rule, "models.Parallel(tensor=…) without pipeline"
        )
    if not places or places[0] is None:
        return {}
    return {"placement": places[0], "sbp": [flow.sbp.broadcast] * len(places[0].hierarchy)}
