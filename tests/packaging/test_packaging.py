"""What is handed out: metadata, licence, changelog, and a wheel that works where nothing else of the project is."""

import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

import sbpjax as flow
from sbpjax import errors
from sbpjax._core import naming
from tests.support.stubs.generate import package_with_stubs, texts

ROOT = Path(__file__).parents[2]
SMOKE = Path(__file__).with_name("smoke.py")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_version_stands_in_one_place():
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"]["attr"] == "sbpjax._core.naming.VERSION"
    assert flow.__version__ == naming.VERSION
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == naming.VERSION
    assert naming.VERSION in (ROOT / "CHANGELOG.md").read_text()


def test_the_licence():
    assert PROJECT["project"]["license"] == "Apache-2.0"
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text and "Version 2.0, January 2004" in text and "END OF TERMS AND CONDITIONS" in text
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["license"] == "Apache-2.0"


def test_every_extra_has_a_reason():
    page = (ROOT / "docs" / "reference" / "dependencies.md").read_text()
    for extra in PROJECT["project"]["optional-dependencies"]:
        assert f"`{extra}`" in page, extra


def test_the_extras_that_pages_promise_exist():
    extras = PROJECT["project"]["optional-dependencies"]
    promised = {"cuda12", "cuda13", "tpu", "train", "vision", "serve", "docs"}
    page = (ROOT / "docs" / "how_to" / "install.md").read_text()
    listed = {name for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert promised <= listed <= extras.keys()


def test_the_lines_of_the_image():
    """Without a Docker daemon: what is copied exists, and is enough to build the package; the extras exist."""
    lines = [line.split() for line in (ROOT / "Dockerfile").read_text().splitlines() if line and line[0] != "#"]
    words = [line[0] for line in lines]
    assert (
        words[0] == "FROM"
        and words[-1] == "CMD"
        and set(words) <= {*"FROM ARG COPY RUN WORKDIR ENV VOLUME CMD".split()}
    )
    copied = {name for line in lines if line[0] == "COPY" for name in line[1:-1]}
    assert all((ROOT / name).exists() for name in copied)
    assert {"pyproject.toml", "setup.py", "sbpjax", "docs", PROJECT["project"]["readme"], "LICENSE"} <= copied
    (default,) = [line[1].partition("=")[2] for line in lines if line[0] == "ARG"]
    page = (ROOT / "docs" / "how_to" / "clusters.md").read_text()
    extras = {default, *re.findall(r"EXTRA=(\w+)", page + (ROOT / "Dockerfile").read_text())}
    assert {"cuda12", "tpu"} == extras <= PROJECT["project"]["optional-dependencies"].keys()
    least = tuple(map(int, PROJECT["project"]["requires-python"].removeprefix(">=").split(".")))
    assert tuple(map(int, re.fullmatch(r"python:([\d.]+)-slim", lines[0][1])[1].split("."))) >= least
    variables = (ROOT / "docs" / "reference" / "environment.md").read_text()
    assert all(f"`{line[1].partition('=')[0]}`" in variables for line in lines if line[0] == "ENV")


def test_pages_that_errors_name_are_there():
    named = set()
    for file in (ROOT / "sbpjax").rglob("*.py"):
        code = file.read_text()
        named |= set(re.findall(r"\bpage\([\"']([\w/.]+)[\"']\)", code))
    assert {"explanation/security.md", "reference/api_coverage.md"} <= named
    for name in named:
        assert Path(errors.page(name)) == ROOT / "docs" / name and Path(errors.page(name)).is_file()


def build(hook, source, target):
    """Call a hook of the build backend, as pip does, in the environment of the tests."""
    pytest.importorskip("setuptools", minversion="77", reason="needs setuptools 77")
    code = f"from setuptools import build_meta; print(build_meta.{hook}({str(target)!r}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return target / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Return a wheel that was made from an sdist that was made from the files of this repository."""
    folder = tmp_path_factory.mktemp("built")
    source, unpacked = folder / "source", folder / "unpacked"
    source.mkdir()
    package_with_stubs(source)
    for name in ("docs", *(p.name for p in ROOT.iterdir() if p.is_file() and p.name != ".git")):
        (source / name).symlink_to(ROOT / name)
    with tarfile.open(build("build_sdist", source, folder)) as archive:
        archive.extractall(unpacked, filter="data")
    (inside,) = unpacked.iterdir()
    assert {"LICENSE", "CHANGELOG.md", "CITATION.cff", "setup.py", "docs"} <= {p.name for p in inside.iterdir()}
    return build("build_wheel", inside, folder)


@pytest.mark.slow
def test_what_the_wheel_holds(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (facts,) = (archive.read(name).decode() for name in names if name.endswith("/METADATA"))
    code = {p.relative_to(ROOT) for p in (ROOT / "sbpjax").rglob("*.py")} | set(texts())
    code = {p.as_posix() for p in code}
    pages = {f"sbpjax/{p.relative_to(ROOT).as_posix()}" for p in (ROOT / "docs").rglob("*.md")}
    info = f"sbpjax-{naming.VERSION}.dist-info/"
    assert {name for name in names if not name.startswith(info)} == {*code, *pages, "sbpjax/py.typed"}
    assert f"{info}licenses/LICENSE" in names and "License-Expression: Apache-2.0" in facts
    assert f"Version: {naming.VERSION}\n" in facts


@pytest.mark.slow
def test_the_wheel_works_where_nothing_else_of_the_project_is(wheel, tmp_path):
    """The dependencies are those of the tests, and sbpjax is the wheel."""
    venv.create(tmp_path / "env", symlinks=True)
    python = tmp_path / "env" / "bin" / "python"
    requested = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.run(requested, capture_output=True, text=True, check=True).stdout.strip())
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")  # .pth files there are not read
    where = {"JAX_PLATFORMS": "cpu", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run([python, SMOKE], cwd=tmp_path, env=where, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"sbpjax {naming.VERSION} works on Python" in done.stdout


def test_all_parts_of_the_tests_are_run_and_a_failure_of_any_fails(tmp_path):
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    for stamp in (".demo", ".test", ".libraries"):
        (tmp_path / stamp).touch()
    for failing, wanted in ((0, 0), (1, 2), (2, 2)):  # which call fails; make's code
        python.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\ntest $(wc -l < {tmp_path}/calls) != {failing}\n')
        python.chmod(0o755)
        (tmp_path / "calls").write_text("")
        run = ["make", "test", f"VENV={tmp_path}"]
        done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
        calls = (tmp_path / "calls").read_text().splitlines()
        assert done.returncode == wanted, done.stderr
        assert len(calls) == 2 and "--ignore=tests/engines" in calls[0] and " tests/engines " in calls[1]
