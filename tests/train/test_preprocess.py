"""The command: what it writes does not depend on its workers, and it refuses what it cannot do with one text."""

import contextlib
import json
import re
import shlex
from pathlib import Path

import pytest

from sbpjax.train import preprocess
from sbpjax.train.data import TokenFile

tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "token_data.md"
TEXTS = [f"document {i} has {i % 7 * 'words '}and ends" for i in range(200)]


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS[:150]))
    (tmp_path / "b.txt").write_text("\n".join(TEXTS[150:]))
    return tmp_path


def run(corpus, *options, output="out"):
    files = [str(corpus / name) for name in ("a.jsonl", "b.txt")]
    preprocess.main([*files, "--output", str(corpus / output), *options])


def documents(corpus, tokenizer, output="out"):
    file = TokenFile(corpus / output)
    return [tokenizer.decode(file[i].tolist(), skip_special_tokens=False) for i in range(len(file))]


def test_a_trained_tokenizer_and_the_documents_again(corpus, capsys):
    run(corpus, "--per-line", "--append-eod", "--train-vocab", "400", "--workers", "1")
    assert "out.bin: 200 documents" in capsys.readouterr().out
    tokenizer = tokenizers.Tokenizer.from_file(str(corpus / "out.tokenizer.json"))
    assert documents(corpus, tokenizer) == [text + "<|endoftext|>" for text in TEXTS]
    assert {path.suffix for path in corpus.iterdir()} == {".jsonl", ".txt", ".bin", ".idx", ".sha256", ".json"}


def test_files_do_not_depend_on_the_number_of_workers(corpus, monkeypatch):
    run(corpus, "--train-vocab", "300", "--workers", "1")
    tokenizer = str(corpus / "out.tokenizer.json")
    cut = preprocess.chunks_of
    monkeypatch.setattr(preprocess, "chunks_of", lambda paths, per_line: cut(paths, per_line, 1000))
    run(corpus, "--tokenizer", tokenizer, "--workers", "3", output="other")
    assert len(TokenFile(corpus / "out")) == 151  # b.txt is one document
    for ending in (".bin", ".idx"):
        assert (corpus / f"out{ending}").read_bytes() == (corpus / f"other{ending}").read_bytes()
    assert not (corpus / "other.tokenizer.json").exists()


def test_nothing_is_overwritten_without_force(corpus):
    run(corpus, "--train-vocab", "300", "--workers", "1")
    with pytest.raises(SystemExit, match="error: preprocess .*\n  seen: .*out.tokenizer.json is there"):
        run(corpus, "--workers", "1")
    with pytest.raises(SystemExit, match="out.bin is there\n.*\n  fix:  --force"):
        run(corpus, "--tokenizer", str(corpus / "out.tokenizer.json"))
    run(corpus, "--per-line", "--train-vocab", "300", "--workers", "1", "--force")
    assert len(TokenFile(corpus / "out")) == 200


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_bad_line_leaves_nothing(corpus, workers, monkeypatch):
    run(corpus, "--train-vocab", "300", "--workers", "1", output="first")
    with open(corpus / "a.jsonl", "a") as file:
        file.write('{"text": null}\n')
    cut = preprocess.chunks_of
    monkeypatch.setattr(preprocess, "chunks_of", lambda paths, per_line: cut(paths, per_line, 4000))
    with pytest.raises(SystemExit, match=r"(?s)a.jsonl, line 151\b.*a line is an object with a text under 'text'"):
        run(corpus, "--tokenizer", str(corpus / "first.tokenizer.json"), "--workers", workers)
    assert not list(corpus.glob("out*"))


def test_progress_counts_documents_and_tokens(corpus, monkeypatch):
    works, original = [], preprocess.show_progress

    @contextlib.contextmanager
    def show(text, total):
        with original(text, total) as work:
            works.append(work)
            yield work

    monkeypatch.setattr(preprocess, "show_progress", show)
    run(corpus, "--train-vocab", "300", "--workers", "1")
    [work] = works
    assert work.text == f"preprocessing to {corpus / 'out'}" and work.done == work.total > 0
    assert re.fullmatch(r"151 documents, [0-9,]+ tokens", work.detail)


def test_the_commands_of_the_page_are_understood():
    commands = re.findall(r"^python -m sbpjax.train.preprocess (.*)$", PAGE.read_text(), re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        assert preprocess.parser().parse_args(shlex.split(command)).append_eod


def test_no_end_of_document(corpus):
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "?": 1}, unk_token="?"))
    tokenizer.save(str(corpus / "tokenizer.json"))
    with pytest.raises(SystemExit, match="fix:  --eod-token TOKEN"):
        run(corpus, "--tokenizer", str(corpus), "--append-eod")
    run(corpus, "--tokenizer", str(corpus), "--eod-token", "a", "--workers", "1")
    assert TokenFile(corpus / "out").tokens.tolist() == [1, 0] * 151
