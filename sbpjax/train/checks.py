"""Checks of the parts of a run before anything is compiled or written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sbpjax import nn, optim
from sbpjax.errors import TrainError
from sbpjax.models import Parallel

from .data.bert_pairs import BertPretrainingDataset
from .data.labelled_texts import LabelledTexts
from .data.packed import PackedTokens
from .data.t5_span_corruption import T5SpanCorruptionDataset
from .step import StepOptions

_LOOKED_AT = 1 << 20  # tokens at each end of a file
_POSITIONS = ("n_positions", "max_position_embeddings")
_TEXTS = (PackedTokens, BertPretrainingDataset, T5SpanCorruptionDataset, LabelledTexts)


def check_kinds(model: Any, optimizer: Any, data: Any, max_steps: Any) -> None:
    """Raise for parts of a wrong kind.

    Raises:
        TrainError: a part is of a wrong kind.
    """
    made = isinstance(optimizer, optim.Optimizer) or callable(optimizer)
    kinds = [
        ("model", model, isinstance(model, nn.Module), "an nn.Module"),
        ("optimizer", optimizer, made, "an Optimizer, or a function of groups of parameters"),
        ("data", data, hasattr(data, "__getitem__") or hasattr(data, "__iter__"), "a dataset or a DataLoader"),
        ("max_steps", max_steps, isinstance(max_steps, int) and max_steps >= 1, "a number of steps, at least 1"),
    ]
    for name, value, right, rule in kinds:
        if not right:
            plain = value is None or isinstance(value, (int, float, str))
            seen = f"{name}={value!r}" if plain else f"{name} is a {type(value).__name__}"
            fix = "max_steps=1000" if name == "max_steps" else f"{name}=…"
            raise TrainError("Trainer(...)", seen, f"{name} is {rule}", fix)


def check_loss(model: nn.Module, loss: Any) -> None:
    """Raise for a model without a loss.

    Raises:
        TrainError: the model has no loss.
    """
    if loss is None and not callable(getattr(model, "loss", None)):
        seen = f"{type(model).__name__} without a method loss"
        rule = "model.loss(*batch) is minimised, or loss="
        fix = "loss=lambda model, x, y: nn.functional.cross_entropy(model(x), y)"
        raise TrainError("Trainer(...)", seen, rule, fix)


def check_batch(batch_size: int, spec: Parallel, options: StepOptions) -> None:
    """Raise for unequal micro-batches, and for the planner's layouts on a pipeline.

    Raises:
        TrainError: ``accumulate`` does not divide the batch, or ``auto`` is set for a pipeline.
    """
    count = options.accumulate
    if count < 1 or batch_size % count:
        rule = f"a batch is cut into equal micro-batches: {batch_size} = {count} · {batch_size / max(count, 1):g}"
        fix = f"accumulate={np.gcd(batch_size, max(count, 1))}"
        raise TrainError("Trainer(options=StepOptions(accumulate=...))", f"accumulate={count}", rule, fix)
    if spec.pipeline > 1 and options.auto:
        rule = "the planner lays a model out on one placement; a pipeline has several"
        raise TrainError("Trainer(options=StepOptions(auto=True))", spec.equation, rule, "pipeline=1, or auto=False")


def check_tokens(model: nn.Module, data: Any) -> None:
    """Raise for texts in another vocabulary than the model's, samples too long for it, and too many classes.

    Of a file of tokens the first and the last million are checked, of a table of texts all.

    Raises:
        TrainError: a token is not in the model's vocabulary, a sample has more positions than the model, or a table
            more classes.
    """
    config = getattr(model, "config", None)
    vocabulary = getattr(config, "vocab_size", None)
    positions = next((found for name in _POSITIONS if (found := getattr(config, name, None))), None)
    labels = getattr(config, "num_labels", None)
    for part in _packed_datasets(data):
        where, highest, longest = _facts(part)
        classes = len(getattr(part, "classes", ()))
        if labels is not None and classes > labels:
            rule = f"{type(model).__name__} tells {labels} classes apart"
            raise TrainError(f"training on {where}", f"{classes} classes", rule, f"num_labels={classes}")
        if positions is not None and longest > positions:
            rule = f"{type(model).__name__} has {positions:,} positions"
            raise TrainError(f"training on {where}", f"samples of {longest:,} tokens", rule, f"length={positions}")
        if vocabulary is not None and highest >= vocabulary:
            rule = f"{type(model).__name__} has vocab_size={vocabulary:,}, so its tokens are 0 to {vocabulary - 1:,}"
            fix = f"vocab_size={highest + 1} or more, or tokens of the model's own tokenizer"
            raise TrainError(f"training on {where}", f"a token {highest:,}", rule, fix)


def check_data(model: nn.Module, data: Any) -> None:
    """Call a model's method `check_data`, if it has one, on the dataset inside loaders and subsets.

    Raises:
        SbpjaxError: of the model's choice.
    """
    check = getattr(model, "check_data", None)
    for each in _layers(data) if check is not None else ():
        check(each)


def check_same_classes(trained: Any, evaluated: Any, name: str) -> None:
    """Raise for evaluation data whose classes are numbered differently than in training.

    Args:
        trained: the dataset of the training, or its loader.
        evaluated: that of the evaluation; compared only if both name their `classes`.
        name: of the evaluation.

    Raises:
        TrainError: names differ, or their order.
    """
    ours, theirs = _classes(trained), _classes(evaluated)
    if ours is None or theirs is None or ours == theirs:
        return
    missing, more = (sorted(set(a) - set(b)) for a, b in ((ours, theirs), (theirs, ours)))
    differences = [f"without {', '.join(missing[:5])}"] * bool(missing) + [
        f"with {', '.join(more[:5])} besides"
    ] * bool(more)
    seen = f"{len(theirs)} classes, {len(ours)} in training: {' and '.join(differences) or 'in another order'}"
    rule = "a label is a place in the list of classes, so both have the same"
    raise TrainError(f"evaluating on {name}", seen, rule, "the same folders in both; one may be left without images")


def _classes(data: Any) -> list[str] | None:
    """Return the class names of a dataset, or of the one that it wraps."""
    for each in _layers(data):
        if isinstance(names := getattr(each, "classes", None), (list, tuple)):
            return [str(name) for name in names]
    return None


def _layers(data: Any) -> Iterator[Any]:
    """Yield a loader or subset, then the dataset that it wraps, and so on inwards."""
    while data is not None:
        yield data
        data = getattr(data, "loader", getattr(data, "dataset", None))


def _packed_datasets(data: Any) -> Iterator[Any]:
    """Yield the token datasets inside a dataset, a loader or a blend."""
    if isinstance(data, _TEXTS):
        yield data
    for inner in ("loader", "dataset"):
        if hasattr(data, inner):
            yield from _packed_datasets(getattr(data, inner))
    for part in getattr(data, "datasets", None) or ():
        yield from _packed_datasets(part)


def _facts(part: Any) -> tuple[str, int, int]:
    """Return the path of a dataset's tokens, the highest token that a sample may hold, and the sample length."""
    if isinstance(part, LabelledTexts):
        return part.path, part.highest, int(part.widths.max())
    size = part.file.tokens.size
    ends = (part.file.read(0, _LOOKED_AT), part.file.read(max(size - _LOOKED_AT, 0), size))
    highest = max(int(piece.max()) for piece in ends)
    if isinstance(part, BertPretrainingDataset):
        highest = max(highest, part.vocabulary - 1)  # a hidden token may be any
    if isinstance(part, T5SpanCorruptionDataset):
        return f"{part.file.prefix}.bin", max(highest, part.sentinel, part.end), part.input_length
    return f"{part.file.prefix}.bin", highest, part.length
