"""What `make docs` builds, without building it: complete contents, links that stay inside, a place for every name."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def loaded(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # its dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def reference():
    return loaded("api_reference")


@pytest.fixture
def conf(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.syspath_prepend(DOCS)
    return loaded("conf")


def test_the_tables_of_contents_are_complete(conf):
    pages = {p.relative_to(DOCS).with_suffix("").as_posix() for p in DOCS.rglob("*.md")}
    reached, ahead = set(), ["index"]
    while ahead:
        page = ahead.pop()
        if page != conf.API and page not in reached:
            reached.add(page)
            folder = "" if page == "index" else page.rpartition("/")[0] + "/"
            if page == "index" or page.endswith("/index"):
                ahead += [name if name == conf.API else folder + name for name in conf.contents(page, text(page))]
    assert reached == pages


def text(page):
    return (DOCS / f"{page}.md").read_text()


def test_links_stay_inside_the_site(conf):
    for file in DOCS.rglob("*.md"):
        page = file.relative_to(DOCS).with_suffix("").as_posix()
        left = [match[3] for match in conf.LINK.finditer(conf.inside(page, text(page)))]
        for target in left:
            if not re.match(r"[a-z]+:|#", target):
                assert (file.parent / target.partition("#")[0]).resolve().is_relative_to(DOCS), (page, target)
    found = conf.inside("how_to/absent", "see [a](../../benchmarks/results/absent.md#b), [c](pipeline.md)")
    assert found == "see a (`benchmarks/results/absent.md` in the repository), [c](pipeline.md)"


def test_every_public_name_is_in_the_reference_and_described_once(reference):
    namespaces = reference.namespaces()
    described = [
        f"{namespace.path}.{name}" for namespace in namespaces for name in (*namespace.classes, *namespace.functions)
    ]
    assert len(described) == len(set(described)) > 1000
    for namespace in namespaces:
        assert namespace.all() == set(reference.public(namespace.path)), namespace.path
        assert set(namespace.elsewhere.values()) <= set(described)
    by_path = {namespace.path: namespace for namespace in namespaces}
    assert {"Linear", "Module", "Graph", "LSTM"} <= set(by_path["sbpjax.nn"].classes)
    assert {"relu", "cross_entropy"} <= by_path["sbpjax.nn.functional"].all()
    assert {"Tensor", "matmul", "load_graph", "wrap_jax", "float32"} <= by_path["sbpjax"].all()


def test_a_page_describes_its_names(reference):
    namespace = reference.PublicModule("sbpjax.nn", ["Linear"], ["from_flax"], ["ONE"], {"relu": "sbpjax.relu"})
    page = reference.page(namespace)
    assert ".. autoclass:: sbpjax.nn.Linear\n   :members:" in page and ".. autofunction:: sbpjax.nn.from_flax" in page
    assert "``relu``: :py:obj:`sbpjax.relu`" in page and "``ONE``" in page


def test_pages_are_written_once(reference, tmp_path, monkeypatch):
    monkeypatch.setattr(reference, "modules", lambda: ["sbpjax.env", "sbpjax"])
    (tmp_path / "old.rst").write_text("")
    reference.write(tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {"index.rst", "sbpjax.rst", "sbpjax.env.rst"}
    before = {p: p.stat().st_mtime_ns for p in tmp_path.iterdir()}
    reference.write(tmp_path)
    assert before == {p: p.stat().st_mtime_ns for p in tmp_path.iterdir()}


def test_dead_links_and_words_that_search_misses_are_found(tmp_path):
    check = loaded("check_site")
    (tmp_path / "a.html").write_text('<h1 id="top"></h1><a href="b.html#there"></a><a href="https://x.y/z"></a>')
    (tmp_path / "b.html").write_text(
        '<p id="there"></p><a href="a.html#gone"></a><img src="c.svg"><a href="#there"></a>'
    )
    assert check.dead_links(tmp_path) == ["b.html: no anchor a.html#gone", "b.html: no file c.svg"]
    index = {
        "terms": {"gradient": 1, "lora": 1},
        "titleterms": {"zero": 1, "checkpoint": 2},
        "objects": {"a": [[0, 0, 1, "", "to_global"]]},
    }
    (tmp_path / "searchindex.js").write_text(f"Search.setIndex({json.dumps(index)})")
    assert check.unknown_words(tmp_path) == ["pipelin"]
