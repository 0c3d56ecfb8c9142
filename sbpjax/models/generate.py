"""Text generation with a key-value cache: one compiled step per token.

    generator = Generator(model, parallel, temperature=0.8, top_p=0.95)
    texts = generator([[1, 15, 7], [1, 4]], new_tokens=32)

Prompts are padded on the left, so that the last tokens of all stand in the same slot, to one of a few lengths. One
program reads the prompts, another one token of each; both write the caches and choose the next tokens on the devices.
Nothing comes to the host before the end, except the checks whether all sequences have stopped.

    slots       0   1   2   3   4   5 …
    prompt 0    –   1  15   7   *   *        attention_mask  0 1 1 1 …   position_ids  – 0 1 2 …
    prompt 1    –   –   1   4   *   *                                  0 0 1 1 …                 – – 0 1 …

Of a model with an encoder the prompts are its source. One more program reads them, and leaves what the decoder's blocks
look at, keys and values of the source; the decoder begins with one token.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import OpValueError
from sbpjax.utils.host import explain_arguments

from .beams import Beams
from .layers import Attention, KeyValues, put
from .parallel import Parallel
from .stopping import StopStrings

BUCKET = 16  # prompts and answers are padded to a multiple of this, or to a power of two of it
CHECK_EVERY = 8  # tokens between two checks whether all sequences have stopped


@dataclass(frozen=True, kw_only=True)
class TokenSampler:
    """Sampling of the next token from logits.

    Attributes:
        temperature: the logits are divided by it; 0 takes the likeliest token.
        top_k: only so many of the likeliest tokens; None for all.
        top_p: only the likeliest tokens that have this probability together; None for all.
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        for name, fits, rule in (
            ("temperature", self.temperature >= 0, "a temperature is at least 0"),
            ("top_k", self.top_k is None or self.top_k >= 1, "at least one token can be chosen"),
            ("top_p", self.top_p is None or 0 < self.top_p <= 1, "a probability is above 0 and at most 1"),
        ):
            if not fits:
                raise OpValueError("generate(...)", f"{name}={getattr(self, name)!r}", rule, f"leave {name} out")

    def __call__(self, logits: flow.Tensor) -> flow.Tensor:
        """Return the chosen tokens `(B, 1)` of logits `(B, V)`."""
        logits = logits.float()
        if self.temperature == 0:
            return logits.argmax(-1, keepdim=True)
        logits = logits / self.temperature
        if self.top_k is not None and self.top_k < logits.shape[-1]:
            least = logits.topk(self.top_k, dim=-1)[0][:, -1:]
            logits = flow.where(logits < least, -math.inf, logits)
        if self.top_p is not None and self.top_p < 1:
            falling = logits.sort(dim=-1, descending=True)[0]
            odds = falling.softmax(-1)
            before = odds.cumsum(-1) - odds  # of the tokens that are likelier
            least = flow.where(before >= self.top_p, math.inf, falling).amin(-1, keepdim=True)
            logits = flow.where(logits < least, -math.inf, logits)
        # The largest of logits with Gumbel noise is a sample of their softmax.
        noise = -(-flow.rand_like(logits).clamp(min=1e-20).log()).log()
        return (logits + noise).argmax(-1, keepdim=True)


class _DecodeState(nn.Module):
    """State of a batch that is decoded: caches, attention mask, last tokens, next cache position."""

    attention_mask: flow.Tensor
    token: flow.Tensor
    source: flow.Tensor
    done: flow.Tensor
    cache_position: flow.Tensor

    def __init__(self, model: nn.Module, tokens: flow.Tensor, slots: int):
        super().__init__()
        batch = tokens.shape[0]
        source = tokens.shape[1] if has_encoder(model) else 0
        layers = [m for m in (model.decoder if source else model).modules() if isinstance(m, Attention)]
        of_source = [layer for layer in layers if source and layer.is_cross]

        def make_caches(layers: list, slots: int) -> nn.ModuleList:
            return nn.ModuleList(KeyValues(*(_zeros_of(layer, tokens, slots) for _ in "kv")) for layer in layers)

        self.past_key_values = make_caches([layer for layer in layers if layer not in of_source], slots)
        self.memory = make_caches(of_source, source)  # keys and values of the source, for cross-attention
        where = {} if not tokens.is_global else {"placement": tokens.placement, "sbp": tokens.sbp}
        self.register_buffer("attention_mask", flow.zeros(batch, slots, dtype=flow.int64, **where))
        self.register_buffer("token", flow.zeros(batch, 1, dtype=flow.int64, **where))
        self.register_buffer("source", flow.zeros(batch, source, dtype=flow.int64, **where))
        self.register_buffer("done", flow.zeros(batch, 1, dtype=flow.bool, **where))
        if where:
            where["sbp"] = [flow.sbp.broadcast] * len(tokens.sbp)
        self.register_buffer("cache_position", flow.zeros((), dtype=flow.int64, **where))

    def logits(
        self,
        model: Any,
        tokens: flow.Tensor,
        attention_mask: flow.Tensor,
        position_ids: flow.Tensor,
        cache_position: flow.Tensor,
    ) -> flow.Tensor:
        """Return the logits `(B, V)` at the last token."""
        if len(self.memory) == 0:
            return model(tokens, attention_mask, position_ids, list(self.past_key_values), cache_position)[:, -1]
        memory = [(one.k, one.v) for one in self.memory]
        return model.decode(tokens, memory, self.source, attention_mask, list(self.past_key_values), cache_position)[
            :, -1
        ]


def _zeros_of(layer: Attention, tokens: flow.Tensor, slots: int) -> flow.Tensor:
    """Return an empty cache of a layer: split as the batch is, and as the layer's heads of keys are."""
    shape = (tokens.shape[0], layer.kv_heads, slots, layer.head_dim)
    weight = layer.k.weight
    if not tokens.is_global:
        return flow.zeros(shape, dtype=layer.cache_dtype)
    split, whole = flow.sbp.split, flow.sbp.broadcast
    layout = [
        split(0) if of_batch == split(0) else split(1) if of_heads == split(0) else whole
        for of_batch, of_heads in zip(tokens.sbp, weight.sbp)
    ]
    return flow.zeros(shape, dtype=layer.cache_dtype, placement=tokens.placement, sbp=layout)


def has_encoder(model: nn.Module) -> bool:
    """Return whether a model writes its tokens about a source that its encoder reads, as `t5.T5` does."""
    return hasattr(model, "encode") and hasattr(model, "decode")


class _Encode(nn.Graph):
    """Encode the source of a model with an encoder.

    Args:
        model: the model.
        slots: where keys and values of the source go.
    """

    def __init__(self, model: nn.Module, slots: _DecodeState):
        super().__init__()
        self.model, self.slots = model, slots

    @flow.no_grad()
    def build(self, tokens: flow.Tensor, attention_mask: flow.Tensor) -> flow.Tensor:
        """Return the vectors `(B, S, D)` of a source `(B, S)`."""
        x = self.model.encode(tokens, attention_mask)
        for block, memory in zip(self.model.decoder.blocks, self.slots.memory):
            for old, new in zip((memory.k, memory.v), block.cross.keys_values(x)):
                old.copy_(new)
        self.slots.source.copy_(attention_mask)
        return x


class _Decode(nn.Graph):
    """Prefill the prompts, or decode one token, and choose the next token."""

    def __init__(self, model: nn.Module, slots: _DecodeState, choice: TokenSampler, stop: tuple[int, ...], pad: int):
        super().__init__()
        self.model, self.slots = model, slots
        self.choice, self.stop, self.pad = choice, stop, pad
        self.config.enable_block_scan(False)  # stacks of all layers' caches would be copied for each token

    @flow.no_grad()
    def build(self, tokens: flow.Tensor | None = None, attention_mask: flow.Tensor | None = None) -> flow.Tensor:
        """Return the next tokens `(B, 1)`; without prompts, after the tokens chosen last."""
        slots = self.slots
        if tokens is None or attention_mask is None:
            tokens, cache_position = slots.token, slots.cache_position
            now = put(slots.attention_mask, flow.ones_like(tokens), cache_position, 1)
            position_ids = now.sum(1, keepdim=True) - 1  # (B, 1)
        else:
            cache_position = flow.zeros_like(slots.cache_position)
            now = put(flow.zeros_like(slots.attention_mask), attention_mask, cache_position, 1)
            position_ids = (attention_mask.cumsum(1) - 1).clamp(min=0)  # (B, T)
            slots.done.fill_(False)
        logits = slots.logits(self.model, tokens, now, position_ids, cache_position)
        token = self.choice(logits)
        if self.stop:
            token = flow.where(slots.done, flow.full_like(token, self.pad), token)
            for one in self.stop:
                slots.done.copy_(slots.done | (token == one))
        slots.attention_mask.copy_(now)
        slots.token.copy_(token)
        slots.cache_position.copy_(cache_position + tokens.shape[1])
        return token.clone()


class _BeamStep(nn.Graph):
    """Prefill the prompts, or decode one token of each beam, and return the best continuations."""

    def __init__(self, model: nn.Module, slots: _DecodeState, beams: int, candidates: int):
        super().__init__()
        self.model, self.slots, self.beams, self.candidates = model, slots, beams, candidates
        self.config.enable_block_scan(False)  # as in `_Decode`

    @flow.no_grad()
    def build(
        self,
        tokens: flow.Tensor,
        scores: flow.Tensor,
        order: flow.Tensor | None = None,
        attention_mask: flow.Tensor | None = None,
    ) -> tuple[flow.Tensor, flow.Tensor]:
        """Return sums of log-probabilities, falling, and places, two `(B, candidates)`.

        Args:
            tokens: `(B N, T)` prompts with `attention_mask`, or `(B N, 1)` tokens with `order`.
            scores: `(B N, 1)`, the sums so far.
            order: `(B N,)`: the row that each row continues.
            attention_mask: `(B N, T)`.
        """
        slots = self.slots
        if attention_mask is not None:
            cache_position = flow.zeros_like(slots.cache_position)
            now = put(flow.zeros_like(slots.attention_mask), attention_mask, cache_position, 1)
            position_ids = (attention_mask.cumsum(1) - 1).clamp(min=0)
        else:
            cache_position = slots.cache_position
            for cache in slots.past_key_values:
                cache.k.copy_(cache.k.index_select(0, order))
                cache.v.copy_(cache.v.index_select(0, order))
            now = put(slots.attention_mask, flow.ones_like(tokens), cache_position, 1)
            position_ids = now.sum(1, keepdim=True) - 1
        logits = slots.logits(self.model, tokens, now, position_ids, cache_position).float()
        sums = logits.log_softmax(-1) + scores  # (B N, V)
        slots.attention_mask.copy_(now)
        slots.cache_position.copy_(cache_position + tokens.shape[1])
        rows, vocab = sums.shape
        values, places = sums.reshape(rows // self.beams, self.beams * vocab).topk(self.candidates, dim=-1)
        return values, places


@explain_arguments
class Generator:
    """Generates with one model; keeps its programs for batches of the same size and prompts of about the same length.

    Args:
        model: of tokens, with `past_key_values` as of `llama.Llama.forward`; or with an encoder, as `t5.T5`.
        parallel: the mesh that the model was laid out for; None for local parameters.
        temperature: the logits are divided by it; 0 takes the likeliest token.
        top_k: choose among so many of the likeliest tokens only.
        top_p: choose among the likeliest tokens that have this probability together only.
        stop: tokens that end a sequence.
        stop_strings: strings that end a sequence; they are searched in the text of the new tokens.
        decode: with stop strings: the text of a list of tokens, such as ``tokenizer.decode``.
        beams: keep so many beginnings of each prompt and return the best end; 1 goes on from one.
        length_penalty: exponent of the number of tokens by which the sum of log-probabilities is divided.

    Raises:
        OpValueError: an option is out of its range, or the mesh has stages.
    """

    def __init__(
        self,
        model: nn.Module,
        parallel: Parallel | None = None,
        *,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        stop: Sequence[int] = (),
        stop_strings: Sequence[str] = (),
        decode: Callable[[list[int]], str] | None = None,
        beams: int = 1,
        length_penalty: float = 1.0,
    ):
        if beams < 1 or (beams > 1 and (temperature != 0 or top_k is not None or top_p is not None)):
            seen = f"beams={beams}, temperature={temperature}, top_k={top_k}, top_p={top_p}"
            rule = "a beam search has at least one beam, and takes the likeliest tokens"
            raise OpValueError("generate(...)", seen, rule, "beams=1 with temperature=, top_k= and top_p=")
        if parallel is not None and parallel.pipeline > 1:
            rule = "a token goes through all blocks in one program, so all are on one placement"
            fix = "load the model with from_pretrained(directory, Parallel(tensor=…))"
            raise OpValueError("generate(...)", parallel.equation, rule, fix)
        self.model, self.parallel, self.stop = model, parallel, tuple(stop)
        self.choice = TokenSampler(temperature=temperature, top_k=top_k, top_p=top_p)
        self.strings = StopStrings(stop_strings, decode)
        self.beams, self.length_penalty = beams, length_penalty
        self._graphs: dict[tuple[int, ...], tuple[_DecodeState, nn.Graph, nn.Graph, nn.Graph | None]] = {}

    def __call__(self, prompts: Sequence[Sequence[int]], new_tokens: int) -> list[list[int]]:
        """Return continuations of prompts.

        Args:
            prompts: token numbers of each, at least one; lengths may differ. Of a model with an encoder, the texts that
                it reads. Any number, on a mesh too.
            new_tokens: the most new tokens of each prompt.

        Returns:
            The new tokens of each prompt, the one that stopped it included.

        Raises:
            OpValueError: there is nothing to read or nothing to write.
        """
        if new_tokens < 1 or not prompts or not all(len(prompt) for prompt in prompts):
            shortest = min(map(len, prompts), default=0)
            seen = f"{len(prompts)} prompts, the shortest of {shortest} tokens, {new_tokens} new ones"
            raise OpValueError("generate(...)", seen, "prompts have a token, and one is generated", "new_tokens=1")
        length = _bucket(max(map(len, prompts)))
        tokens, attention_mask = np.zeros((2, len(prompts), length), np.int64)
        for row, prompt in enumerate(prompts):
            tokens[row, length - len(prompt) :] = prompt
            attention_mask[row, length - len(prompt) :] = 1
        slots = (0 if has_encoder(self.model) else length) + -(-new_tokens // BUCKET) * BUCKET
        was_training = self.model.training
        self.model.eval()
        try:
            return (self._sample if self.beams == 1 else self._search_beams)(tokens, attention_mask, slots, new_tokens)
        finally:
            self.model.train(was_training)

    def _place(self, value: np.ndarray) -> flow.Tensor:
        return flow.tensor(value) if self.parallel is None else self.parallel.place(value)

    def _sample(self, tokens: np.ndarray, attention_mask: np.ndarray, slots: int, new_tokens: int) -> list[list[int]]:
        state, read, step, (given, there) = self._programs(tokens, attention_mask, slots)
        chosen = [read(given, there)]
        while len(chosen) < new_tokens:
            if len(chosen) % CHECK_EVERY == 0 and self._all_ended(state, chosen):
                break
            chosen.append(step())
        return [row[: self._end(row)] for row in _rows(chosen)]

    def _all_ended(self, state: _DecodeState, chosen: list[flow.Tensor]) -> bool:
        if self.strings.strings:
            return all(self._end(row) is not None for row in _rows(chosen))
        return bool(self.stop) and bool(state.done.all().item())

    def _search_beams(
        self, tokens: np.ndarray, attention_mask: np.ndarray, slots: int, new_tokens: int
    ) -> list[list[int]]:
        ends = self.strings.end if self.strings.strings else None
        beams = Beams(len(tokens), self.beams, new_tokens, self.stop, self.length_penalty, ends)
        tokens, attention_mask = tokens.repeat(self.beams, 0), attention_mask.repeat(self.beams, 0)
        _, read, step, (given, there) = self._programs(tokens, attention_mask, slots)
        vocab = self.model.config.vocab_size
        values, places = read(given, self._place(beams.scores.reshape(-1, 1)), attention_mask=there)
        while True:
            order = beams.advance(values.numpy(), places.numpy(), vocab)
            if beams.is_done:
                return beams.best()
            rows = order + self.beams * np.arange(len(order))[:, None]  # of all prompts
            last, scores = beams.tokens[..., -1:].reshape(-1, 1), beams.scores.reshape(-1, 1)
            values, places = step(self._place(last), self._place(scores), order=self._place(rows.reshape(-1)))

    def _programs(
        self, tokens: np.ndarray, attention_mask: np.ndarray, slots: int
    ) -> tuple[_DecodeState, nn.Graph, nn.Graph, list]:
        """Return the state, both programs, and what the first one reads; a source is read."""
        given = [self._place(tokens), self._place(attention_mask)]
        key = (*tokens.shape, slots) if has_encoder(self.model) else (len(tokens), slots)
        if key not in self._graphs:
            made = _DecodeState(self.model, given[0], slots)

            def graph() -> nn.Graph:
                if self.beams == 1:
                    return _Decode(self.model, made, self.choice, self.stop, pad=self.stop[0] if self.stop else 0)
                candidates = Beams(0, self.beams, 1, self.stop, self.length_penalty).candidates
                return _BeamStep(self.model, made, self.beams, candidates)

            source = _Encode(self.model, made) if has_encoder(self.model) else None
            self._graphs[key] = (made, graph(), graph(), source)
        state, read, step, source = self._graphs[key]
        if source is not None:
            source(*given)
            start = np.full((len(tokens), 1), self.model.config.decoder_start_token_id)
            given = [self._place(start), self._place(np.ones_like(start))]
        return state, read, step, given

    def _end(self, row: list[int]) -> int | None:
        """Return how many tokens of a row there are with the one that stops it; None if none does."""
        stopped = next((i + 1 for i, token in enumerate(row) if token in self.stop), None)
        return self.strings.end(row[:stopped]) or stopped


def _rows(tokens: list[flow.Tensor]) -> list[list[int]]:
    return np.concatenate([token.numpy() for token in tokens], 1).tolist()


def _bucket(length: int) -> int:
    return BUCKET * 2 ** max(0, math.ceil(math.log2(length / BUCKET)))


def generate(
    model: nn.Module,
    prompts: Sequence[Sequence[int]],
    new_tokens: int,
    parallel: Parallel | None = None,
    *,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    stop: Sequence[int] = (),
    stop_strings: Sequence[str] = (),
    decode: Callable[[list[int]], str] | None = None,
    beams: int = 1,
    length_penalty: float = 1.0,
) -> list[list[int]]:
    """Return continuations of prompts; for many calls keep a `Generator`, which compiles once.

    Args:
        model: of tokens.
        prompts: token numbers of each; lengths may differ.
        new_tokens: the most new tokens of each prompt.
        parallel: the mesh that the model was laid out for; None for local parameters.
        temperature: the logits are divided by it; 0 takes the likeliest token.
        top_k: choose among so many of the likeliest tokens only.
        top_p: choose among the likeliest tokens that have this probability together only.
        stop: tokens that end a sequence.
        stop_strings: strings that end a sequence; they are searched in the text of the new tokens.
        decode: with stop strings: the text of a list of tokens, such as ``tokenizer.decode``.
        beams: keep so many beginnings of each prompt and return the best end; 1 goes on from one.
        length_penalty: exponent of the number of tokens by which the sum of log-probabilities is divided.

    Returns:
        The new tokens of each prompt, the one that stopped it included.

    Raises:
        OpValueError: an option is out of its range, or the mesh has stages.

    Example:
        >>> config = flow.models.gpt2.GPT2Config(vocab_size=64, n_positions=64, n_embd=16, n_layer=1, n_head=2)
        >>> found = flow.models.generate(flow.models.gpt2.GPT2(config), [[1, 2], [3]], new_tokens=3)
        >>> [len(tokens) for tokens in found]
        [3, 3]
    """
    options: dict[str, Any] = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "stop": stop}
    options |= {"stop_strings": stop_strings, "decode": decode, "beams": beams, "length_penalty": length_penalty}
    made = Generator(model, parallel, **options)
    return made(prompts, new_tokens)
