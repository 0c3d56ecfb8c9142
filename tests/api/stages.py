"""Write `docs/reference/stages.md`: the stage of each feature with its tests and pages, from the table `stages.txt`.

python -m tests.api.stages
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "reference" / "stages.md"
PLANNED, PRE_ALPHA, ALPHA, BETA = "planned", "pre-alpha", "alpha", "beta"
# From the least to the most: the meaning of a stage.
STAGES = {
    PLANNED: "missing",
    PRE_ALPHA: "a prototype, or a goal not reached; limited tests, unknown performance, names that may change",
    ALPHA: "the core works, is tested and documented, and is measured if a figure makes sense; names may change",
    BETA: "complete, with names that users have reviewed; tests of corner cases and whole programs; scaling figures",
    "release candidate": "tried in production by others, with reports on performance and scaling; names reviewed",
    "stable": "ready for production; names are kept for a year",
}


@dataclass(frozen=True)
class Feature:
    """One promise.

    Attributes:
        area: its area.
        name: its name.
        stage: a key of `STAGES`.
        tests: tests that show it, ``"folder/file.py::function"`` in ``tests/``.
        benchmark: the script in ``benchmarks/`` that measures it, or empty.
        unmeasured: why a figure makes no sense, where there is no benchmark.
        page: the page in ``docs/`` that describes it, or empty.
        note: missing parts.
    """

    area: str
    name: str
    stage: str
    tests: tuple[str, ...] = ()
    benchmark: str = ""
    page: str = ""
    note: str = ""
    unmeasured: str = ""


def _features(text: str) -> Iterator[Feature]:
    area, lines = "", [line for line in text.splitlines() if not line.startswith("#")]
    for i, line in enumerate(lines):
        if not line.startswith(" "):
            area = line
        elif not line.startswith("    "):
            tests = itertools.takewhile(lambda below: below.startswith("    "), lines[i + 1 :])
            name, stage, benchmark, page, note = [*map(str.strip, line.split("|")), "", "", ""][:5]
            reason = benchmark if benchmark.startswith("no figure: ") else ""
            yield Feature(
                area, name, stage, tuple(map(str.strip, tests)), "" if reason else benchmark, page, note, reason
            )


def _by_area(features: Iterable[Feature]) -> tuple[Feature, ...]:
    """Return rows of one area one after the other, where the area is first met."""
    areas: dict[str, list[Feature]] = {}
    for feature in features:
        areas.setdefault(feature.area, []).append(feature)
    return tuple(itertools.chain.from_iterable(areas.values()))


FEATURES = _by_area(_features((HERE / "stages.txt").read_text()))

HEAD = """# Features and their stages

This page lists the features that OneFlow 0.7, its documentation and [its paper](https://arxiv.org/abs/2110.15032)
promise, with their maturity in sbpjax. Tests are in `tests/`, benchmarks in `benchmarks/`, and their figures in
`benchmarks/results/`. A test fails if a listed test or benchmark does not exist, or if a feature does not meet the
conditions of its stage.

| stage | meaning |
| --- | --- |
"""
REASON = """
No feature is above alpha: nobody outside the project has reviewed or tried it, and benchmarks with several devices ran
on virtual CPU devices, or were only compiled ahead of time for other machines. In the API reference, names that are
less mature than their feature are marked. `make api` generates this page.
"""


def page() -> str:
    """Return the page."""
    text = HEAD + "".join(f"| {stage} | {meaning} |\n" for stage, meaning in STAGES.items()) + REASON
    for area, features in itertools.groupby(FEATURES, lambda feature: feature.area):
        text += f"\n## {area}\n\n| feature | stage | page | benchmark | tests |\n| --- | --- | --- | --- | --- |\n"
        text += "".join(map(_row, features))
    return text


def _row(feature: Feature) -> str:
    tests = "<br>".join(f"`{test}`" for test in feature.tests)
    name = f"{feature.name} ({feature.note})" if feature.note else feature.name
    benchmark = f"`{feature.benchmark}`" if feature.benchmark else feature.unmeasured
    folder, _, file = feature.page.partition("/")
    link = f"[{file}]({'' if folder == 'reference' else f'../{folder}/'}{file})" if file else ""
    return f"| {name} | {feature.stage} | {link} | {benchmark} | {tests} |\n"


if __name__ == "__main__":
    PAGE.write_text(page())
