r"""`Bleu`: corpus BLEU of translations, equal to sacreBLEU's defaults.

    BLEU = 100 · brevity · (p₁ · p₂ · p₃ · p₄)^¼               pₙ: share of the runs of n words that the references have
    brevity = 1 if the translations are longer than the references, else e^(1 - references / translations)

A run counts at most as often as a reference has it. Where no run of n words is found, pₙ is half of one, then a quarter
for the next n, and so on. Words are cut as the scripts of the NIST evaluation do. So figures are those of sacreBLEU by
its defaults (``nrefs:…|case:mixed|eff:no|tok:13a|smooth:exp``).

Source: Papineni et al., "BLEU", 2002; mteval-v13a.pl of NIST; Chen and Cherry, 2014, smoothing 3.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from .metric import Metric, Select

_ORDERS = 4
_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
_CUTS = (
    (re.compile(r"([{-~\[-` -&(-+:-@/])"), r" \1 "),  # marks, but not ' , - .
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),  # points and commas that are in no number
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)


def words(text: str) -> list[str]:
    """Return the words of a text, marks by themselves.

    Example:
        >>> words('He paid 3,000.50 ("net"), no?')
        ['He', 'paid', '3,000.50', '(', '"', 'net', '"', ')', ',', 'no', '?']
    """
    text = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for entity, mark in _ENTITIES:
        text = text.replace(entity, mark)
    text = f" {text} "
    for pattern, put in _CUTS:
        text = pattern.sub(put, text)
    return text.split()


def _runs(of: list[str]) -> Counter:
    return Counter(tuple(of[i : i + n]) for n in range(1, _ORDERS + 1) for i in range(len(of) - n + 1))


class Bleu(Metric):
    """BLEU of a corpus, from 0 to 100.

    Args:
        decode: makes texts of a model's outputs and of the targets, e.g. a tokenizer's ``decode_batch``; by default
            they are texts already.
        select: see `Metric`. Predictions are texts, one per sample; targets are texts, or lists of several references.

    Example:
        >>> metric = Bleu()
        >>> metric.update(["the cat sat on a mat"], (None, ["the cat sat on the mat"]))
        >>> round(metric.compute()["bleu"], 2)
        53.73
    """

    def __init__(self, decode: Callable[[Any], list[str]] | None = None, select: Select | None = None) -> None:
        self.decode = decode
        super().__init__(select)

    def zero(self) -> dict[str, Any]:
        """Return no texts."""
        none = np.zeros(_ORDERS, np.int64)
        return {"found": none, "runs": none, "words": 0, "reference_words": 0}

    def count(self, state: dict[str, Any], predictions: Any, targets: Any) -> None:
        """Count the texts of a batch."""
        if self.decode is not None:
            predictions, targets = self.decode(predictions), self.decode(targets)
        for text, actual in zip(predictions, targets, strict=True):
            self._take(state, words(text), [words(each) for each in ([actual] if isinstance(actual, str) else actual)])

    def _take(self, state: dict[str, Any], predicted: list[str], references: list[list[str]]) -> None:
        most: Counter = Counter()
        for each in references:
            most |= _runs(each)
        for run, times in _runs(predicted).items():
            state["runs"] = state["runs"] + (np.arange(_ORDERS) == len(run) - 1) * times
            state["found"] = state["found"] + (np.arange(_ORDERS) == len(run) - 1) * min(times, most[run])
        state["words"] += len(predicted)
        # The reference that is nearest in length; of two, the shorter.
        state["reference_words"] += min((abs(len(each) - len(predicted)), len(each)) for each in references)[1]

    def result(self, state: dict[str, Any]) -> dict[str, float]:
        """Return ``bleu``."""
        found, runs = state["found"].tolist(), state["runs"].tolist()
        if not any(found) or not all(runs):
            return {"bleu": 0.0}
        logarithms, missing = 0.0, 1
        for right, count in zip(found, runs, strict=True):
            missing *= 1 if right else 2
            logarithms += math.log((right or 1 / missing) / count)
        short = state["words"] < state["reference_words"]
        brevity = math.exp(1 - state["reference_words"] / state["words"]) if short else 1.0
        return {"bleu": 100 * brevity * math.exp(logarithms / _ORDERS)}
