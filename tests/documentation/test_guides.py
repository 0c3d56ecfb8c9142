"""Tutorials, how-to pages and the reference of options are true: their sessions print what they say, their code runs.

Blocks with ``>>>`` are doctests; other blocks of Python run one after the other in one space of names. A block that
begins with the name of a file is a program too, run by Python. Commands of the launcher and of `sbpjax.run` are parsed.
"""

import ast
import doctest
import importlib.util
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import sbpjax as flow
from sbpjax.distributed import launch
from sbpjax.graph.config import GraphConfig

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Pages whose code other tests run, which know more about it.
DEFINED_ELSEWHERE = {
    "adding_a_rule": "tests/test_readme.py",
    "absent": "tests/documentation/test_pages.py",
    "adding_an_op": "tests/functions/test_adding_an_op.py",
    "auto_parallel": "tests/documentation/test_pages.py",
    "new_model": "tests/models/test_new_model.py",
    "pipeline": "tests/graph/pipeline/test_document.py",
}
# Those of `reference/image_models` are run by `tests/vision/test_zoo_table.py`.
GENERATED = DOCS / "reference" / "image_models"
PAGES = sorted(
    page
    for page in DOCS.rglob("*.md")
    if "```python" in page.read_text() and page.stem not in DEFINED_ELSEWHERE and page.parent != GENERATED
)
NEEDS_TRANSFORMERS = re.compile(r"^from transformers import", re.MULTILINE)


def blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)


def test_other_tests_run_the_other_pages():
    for name, test in DEFINED_ELSEWHERE.items():
        assert name in (ROOT / test).read_text()


@pytest.mark.parametrize("page", [p for p in PAGES if ">>>" in p.read_text()], ids=lambda p: p.stem)
def test_a_session_prints_what_the_page_says(page):
    source = "\n".join(block for block in blocks(page) if ">>>" in block)
    session = doctest.DocTestParser().get_doctest(source, {}, page.stem, str(page), 0)
    runner, report = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE), []
    runner.run(session, out=report.append)
    assert runner.failures == 0, "".join(report)


def test_the_command_of_the_tutorials_writes_the_code_of_each_page(tmp_path):
    index = (DOCS / "tutorials" / "index.md").read_text()
    command = re.search(r"^sed .* > gpt.py$", index, re.MULTILINE)[0]
    for page in (page for page in PAGES if ">>>" in page.read_text()):
        name = page.relative_to(ROOT).as_posix()
        line = command.replace("docs/tutorials/gpt.md", name).replace("gpt.py", str(tmp_path / "code.py"))
        subprocess.run(["bash", "-c", line], check=True, cwd=ROOT)
        source = "".join(each.source for each in doctest.DocTestParser().get_examples(page.read_text()))
        assert ast.dump(ast.parse((tmp_path / "code.py").read_text())) == ast.dump(ast.parse(source)), name
        assert page.parent.name != "tutorials" or "](index.md#code-as-a-file)" in page.read_text(), name


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_code_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = [block for block in blocks(page) if ">>>" not in block]
    if any(map(NEEDS_TRANSFORMERS.search, code)):
        first = next(i for i, block in enumerate(code) if NEEDS_TRANSFORMERS.search(block))
        code = code[:first]  # the rest runs under the alias, below
    names = {"__name__": "page"}
    try:
        for block in code:
            exec(compile(block, page.name, "exec"), names)
    finally:
        flow.mock_torch.disable()  # a page that fails may leave it on, and every later test would fail


# Those beside a console are run by `test_consoles.py`, in their order.
PROGRAMS = [
    (page, block)
    for page in PAGES
    for block in blocks(page)
    if re.match(r"# \w+\.py\n", block) and "```console" not in page.read_text()
]


@pytest.mark.parametrize("page, block", PROGRAMS, ids=lambda value: getattr(value, "stem", "program"))
def test_a_program_runs(page, block, tmp_path):
    program = tmp_path / block[2:].partition("\n")[0]
    program.write_text(block)
    run = [sys.executable, program]
    subprocess.run(run, check=True, cwd=tmp_path, timeout=300, env=_environment())


@pytest.mark.exhaustive
@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed")
def test_a_llama_of_hugging_face_trains_unchanged_and_laid_out_by_the_planner(tmp_path):
    code = blocks(DOCS / "how_to" / "torch_scripts.md")
    first = next(i for i, block in enumerate(code) if NEEDS_TRANSFORMERS.search(block))
    (tmp_path / "llama.py").write_text("\n".join(code[first:]))
    run = [sys.executable, "-m", "sbpjax.run", "--as", "torch", "llama.py"]
    found = subprocess.run(run, cwd=tmp_path, timeout=600, env=_environment(), capture_output=True, text=True)
    assert found.returncode == 0, found.stderr[-3000:]
    losses = [float(loss) for loss in re.findall(r"^\d (\S+)$", found.stdout, flags=re.MULTILINE)]
    assert len(losses) == 6 and losses[0] > losses[2] > losses[5]
    assert "data parallel" in found.stdout


def _environment():
    import os

    return {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "SBPJAX_CPU_DEVICES": "8", "NPROC": "32"}


COMMANDS = sorted(
    {
        line.strip()
        for page in [ROOT / "README.md", *DOCS.rglob("*.md")]
        for line in re.findall(
            r"^ {4}(python -m sbpjax\.(?:distributed\.launch|run) .*)$", page.read_text(), re.MULTILINE
        )
        if "[" not in line
    }
)


def test_there_are_commands():
    assert len(COMMANDS) > 8


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_understood(command, monkeypatch):
    words = shlex.split(command, comments=True)[2:]
    if words[0] == "sbpjax.distributed.launch":
        options = launch.parser().parse_args(words[1:])
        most = options.nnodes[1] if isinstance(options.nnodes, tuple) else options.nnodes
        assert options.nproc_per_node > 1 and 0 <= (options.node_rank or 0) < most
        words = [options.training_script, *options.training_script_args]
        if words[0] != "sbpjax.run":
            return
    known = {"--as", "--lazy", "--verbose", "-m"}
    before = words[1 : next(i for i, word in enumerate(words) if word.endswith(".py") or word.startswith("project"))]
    assert {word for word in before if word.startswith("-")} <= known


def test_the_processes_of_a_manifest_meet(tmp_path):
    yaml = pytest.importorskip("yaml")  # of transformers
    page = DOCS / "how_to" / "clusters.md"
    parts = [list(yaml.safe_load_all(text)) for text in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)]
    (service, job), (jobset,) = parts
    spec = job["spec"]
    container = spec["template"]["spec"]["containers"][0]
    assert (
        service["spec"]["selector"] == {"job-name": job["metadata"]["name"]} and service["spec"]["clusterIP"] == "None"
    )
    assert spec["template"]["spec"]["subdomain"] == service["metadata"]["name"] and spec["completionMode"] == "Indexed"
    given = {entry["name"]: entry.get("value") for entry in container["env"]}
    name = f"{job['metadata']['name']}-0.{service['metadata']['name']}"
    assert given["MASTER_ADDR"] == name and spec["completions"] == spec["parallelism"] == int(given["WORLD_SIZE"])
    slices = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert slices["parallelism"] == slices["completions"] == 2 * 2 * 4 // 4

    (tmp_path / "train.py").write_text(blocks(page)[0])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    here = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "SBPJAX_JOB_SECRET": "s" * 32,
        "SBPJAX_CPU_DEVICES": "2",
    }
    processes = [
        subprocess.Popen(
            [sys.executable, *container["command"][1:]],
            cwd=tmp_path,
            env={**_environment(), **given, **here, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(spec["completions"])
    ]
    found = [process.communicate(timeout=300)[0].splitlines()[-1] for process in processes]  # Gloo speaks before
    assert found == ["0 2 64.0", "1 2 64.0"]


def test_the_reference_has_every_option_of_the_launcher():
    page = (DOCS / "reference" / "launcher.md").read_text()
    options = {o for action in launch.parser()._actions for o in action.option_strings} - {"-h", "--help"}
    assert options and all(f"`{option}`" in page for option in options)


def test_the_reference_has_every_option_of_a_graph():
    page = (DOCS / "reference" / "graph_options.md").read_text()
    reads = {"key", "casting", "least_iterations", "auto", "prices"}
    for name, value in vars(GraphConfig).items():
        if callable(value) and not name.startswith("_") and name not in reads:
            assert f"`{name}" in page, name
    named = re.findall(
        r"`(?:graph\.)?((?:set|enable|allow|add|explain|traffic|memory|why|debug|export)_?\w*)[`(]", page
    )
    assert len(named) > 20 and all(hasattr(GraphConfig, n) or hasattr(flow.nn.Graph, n) for n in named), named


def test_guides_stay_short():
    for page in [*(DOCS / "tutorials").glob("*.md"), *(DOCS / "how_to").glob("*.md")]:
        words = [w for w in page.read_text().split() if re.search(r"\w", w)]
        assert len(words) <= 1200, page.name


def test_every_page_is_on_the_index_of_its_kind_and_in_the_readme():
    readme = set(re.findall(r"\]\(docs/([^)#]*)\)", (ROOT / "README.md").read_text()))
    for kind in ("tutorials", "how_to", "reference", "explanation"):
        folder = DOCS / kind
        pages = {page.name for page in folder.glob("*.md")} - {"index.md"}
        linked = set(re.findall(r"^\| \[[^\]]*\]\((\w+\.md)\) \|", (folder / "index.md").read_text(), re.MULTILINE))
        assert linked == pages
        assert {f"{kind}/{name}" for name in pages} <= readme
        assert f"]({kind}/index.md)" in (DOCS / "index.md").read_text()
    assert {page.name for page in DOCS.glob("*.md")} == {"index.md"}


def test_the_picture_is_what_its_script_draws():
    names = {"__name__": "layouts", "__file__": str(DOCS / "pictures" / "layouts.py")}
    exec((DOCS / "pictures" / "layouts.py").read_text(), names)
    assert names["picture"]() == (DOCS / "pictures" / "layouts.svg").read_text()


def test_the_pictures_of_tensors_are_those_of_the_session():
    names = {"__name__": "tensors", "__file__": str(DOCS / "pictures" / "tensors.py")}
    exec((DOCS / "pictures" / "tensors.py").read_text(), names)
    drawn = names["pictures"]()
    assert len(drawn) == 7
    for name, svg in drawn.items():
        assert (DOCS / "pictures" / f"{name}.svg").read_text() == svg, "write it anew: python docs/pictures/tensors.py"


@pytest.mark.parametrize(
    "name", "load_graph wait sbpjax.run DataLoader export from_flax wrap_jax load_safetensors simulate".split()
)
def test_names_are_found_in_guides(name):
    pages = [*(DOCS / "tutorials").glob("*.md"), *(DOCS / "how_to").glob("*.md")]
    assert any(re.search(rf"\b{re.escape(name)}\b", page.read_text()) for page in pages)


def test_code_of_guides_is_python():
    for page in PAGES:
        for block in blocks(page):
            if ">>>" not in block:
                ast.parse(block)
