"""Write `docs/reference/stages.md`: how far each feature is, from the table of `_core.inspect.stages`.

python -m tests.api.stages
"""

from __future__ import annotations

import itertools

from sbpjax._core.inspect.stages import FEATURES, STAGES, Feature
from tests.api.coverage import HERE

PAGE = HERE.parent.parent / "docs" / "reference" / "stages.md"
HEAD = """# Features and their stages

What OneFlow 0.7 and its documents promise, line by line, and how far each feature is here. `sbpjax.stages()` prints the
table, and `sbpjax.stages("zero")` the rows about something. Tests are in `tests/`, benchmarks in `benchmarks/`, their
figures in `benchmarks/results/`. A test fails where one that is named here does not exist, or where a stage has less
than it needs.

| stage | says |
| --- | --- |
"""
WHY = """
Nothing is above alpha: nobody outside the project has reviewed or tried it, and benchmarks of several devices ran on
virtual ones of a CPU, or were compiled for machines that were not there. In the
reference, names below the stage of their feature are marked. This page is written by `make api`.
"""


def page() -> str:
    """Return the page."""
    text = HEAD + "".join(f"| {stage} | {says} |\n" for stage, says in STAGES.items()) + WHY
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
