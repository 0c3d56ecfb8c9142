"""The pages under `docs/` hang together: links lead somewhere, and environment variables are those of the code."""

import re
from pathlib import Path

import pytest

import sbpjax

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
VARIABLE = re.compile(r"SBPJAX_[A-Z0-9_]*[A-Z0-9]")


def anchors(page):
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page):
    """Return the links of a page to files or headings that are not there."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    found = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = target.partition("#")
        linked = page.parent / name if name else page
        if not re.match(r"[a-z]+:", target) and not (linked.exists() and (not anchor or anchor in anchors(linked))):
            found.append(target)
    return found


def test_links_lead_somewhere():
    assert {str(page): found for page in PAGES if (found := broken_links(page))} == {}


FOR_MAINTAINERS = [
    ROOT / "CONTRIBUTING.md",
    *(ROOT / "docs" / "how_to" / f"{n}.md" for n in "absent auto_parallel adding_a_rule adding_an_op pipeline".split()),
    *(
        ROOT / "docs" / "explanation" / f"{n}.md"
        for n in "auto design planning storage eager checkpoints names".split()
    ),
    *(ROOT / "docs" / "reference" / f"{n}.md" for n in ("glossary", "primitives")),
]
PARTS = ("sbpjax", "tests", "benchmarks", "examples", "docs")
MOST_WORDS = {"design": 2500, **dict.fromkeys("storage eager checkpoints names".split(), 600)}


def missing_paths(text, there):
    """Return the paths of a text that do not exist: from the root or `sbpjax/` on; single names anywhere."""
    named = set(re.findall(r"[\w./]*\w\.py\b", text)) | {n.rstrip("/") for n in re.findall(r"`((?:\w+/)+)`", text)}
    names = {path.rpartition("/")[2] for path in there}
    return sorted(n for n in named if not ({n, f"sbpjax/{n}"} & there if "/" in n else n in names))


def test_paths_that_pages_for_maintainers_name_exist():
    there = {*PARTS, *(p.relative_to(ROOT).as_posix() for part in PARTS for p in (ROOT / part).rglob("*"))}
    assert {str(page): found for page in FOR_MAINTAINERS if (found := missing_paths(page.read_text(), there))} == {}


def test_a_path_without_its_folder_is_missing():
    there = {"sbpjax", "sbpjax/_core", "sbpjax/_core/ops", "sbpjax/_core/ops/pad.py", "tests/ops/test_pad.py"}
    text = "`ops/pad.py` `_core/ops/pad.py` pad.py `tests/ops/test_pad.py` `ops/` `core/ops/` `sbpjax/_core/ops/` no.py"
    assert missing_paths(text, there) == ["core/ops", "no.py", "ops/pad.py"]


def test_pages_for_maintainers_stay_short():
    for page in FOR_MAINTAINERS:
        words = [w for w in page.read_text().split() if re.search(r"\w", w)]  # the bars of tables are none
        assert len(words) <= MOST_WORDS.get(page.stem, 1500), page.name


def test_design_stays_short():
    assert len((ROOT / "docs" / "explanation" / "design.md").read_text().split()) <= 2500


def test_environment_variables_are_those_of_the_code():
    rows = re.findall(
        r"^\| `(SBPJAX_\w+)` \|", (ROOT / "docs" / "reference" / "environment.md").read_text(), flags=re.MULTILINE
    )
    assert len(rows) == len(set(rows)) > 10
    sources = (ROOT / "sbpjax").rglob("*.py")
    assert set(rows) == {name for path in sources for name in VARIABLE.findall(path.read_text())}


def test_pages_speak_of_no_other_variable():
    listed = set(VARIABLE.findall((ROOT / "docs" / "reference" / "environment.md").read_text()))
    for page in PAGES:
        assert set(VARIABLE.findall(page.read_text())) <= listed, page.name


@pytest.mark.parametrize(
    "page, to",
    [("reference/differences.md", "compatibility.md#"), ("explanation/security.md", "../reference/environment.md")],
)
def test_a_reader_is_led_on(page, to):
    assert f"]({to}" in (ROOT / "docs" / page).read_text()


def test_the_example_of_many_processes_means_the_same_on_one_and_on_two():
    page = (ROOT / "docs" / "how_to" / "launch.md").read_text()
    source = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)[0]
    exec(source, {})
    sbpjax.simulate(ranks=2)(lambda: exec(source, {}))()


def test_the_examples_of_absent_machines_are_planned_and_not_run(capsys):
    page = (ROOT / "docs" / "how_to" / "absent.md").read_text()
    one, llama = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    names = {}
    exec(one, names)
    report = capsys.readouterr().out
    assert "estimated from the plan" in report and "all-gather" in report
    exec(llama, names)
    [table] = re.findall(r"```\n(parameters.*?)```", page, flags=re.DOTALL)
    report = capsys.readouterr().out.splitlines()
    assert all(line in report for line in table.splitlines()) and "total" in table


def test_the_reports_on_the_page_of_auto_parallelism_are_those_of_its_model(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "how_to" / "auto_parallel.md").read_text()
    model, requested = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    model, run = model.split("loss = graph(x, y)")
    table, answer = re.findall(r"```\n(Train_0.*?|model.*?)```", page, flags=re.DOTALL)
    names = {}
    monkeypatch.chdir(tmp_path)
    exec(model + requested, names)
    assert re.sub("Train_[0-9]+", "Train_0", str(names["report"])).startswith(table)
    assert str(names["answer"]) == answer.strip()
    exec("loss = graph(x, y)" + run, names)
    assert names["loss"].is_local and names["model"][0].up.weight.is_global
