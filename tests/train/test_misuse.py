"""What users get wrong: one message in four parts, an exit code that is not 0, and nothing written."""

import shutil

import numpy as np
import pytest

from sbpjax.train.cli import main
from sbpjax.train.data import TokenFileWriter, token_dtype
from tests.train import class_config

# ruff: noqa: E501  # a table of cases

TEXT, TOWER, CLASSES = "tests.train.text_config", "tests.train.run_config", "tests.train.class_config"


def cut_short(path, by=1):
    path.write_bytes(path.read_bytes()[:-by])


def turn_a_byte(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def tokens_up_to(folder, count, name="pages"):
    with TokenFileWriter(folder / name, token_dtype(count), overwrite=True) as writer:
        writer.add(np.arange(600) % count)


def write(name, text):
    return lambda folder: (folder / name).write_text(text)


# Command, what is done to the folder before, and what "seen" and "fix" begin with.
CASES = {
    "a file that is not there": (["confg.py"], write("config.py", ""), "no such file", "config.py"),
    "a module that is not there": (["no.such.config"], None, "No module named 'no'", "no.such.config.py"),
    "a file that does not compile": (["c.py"], write("c.py", "a = (\n"), "SyntaxError", "mend "),
    "a file that raises": (["c.py"], write("c.py", "a = 1 / 0\n"), "ZeroDivisionError", "mend "),
    "a file without a trainer": (["c.py"], write("c.py", "trainr = 1\n"), "the names trainr", "trainer = trainr"),
    "a call with a wrong argument": (
        ["c.py"],
        write("c.py", "from sbpjax.train.config import *\nfrom sbpjax.train import *\ntrainer = LazyCall(Trainer)(modle=1)\n"),
        "an argument 'modle'",
        "write 'model'",
    ),
    "a saved file of another version": (["c.yaml"], write("c.yaml", "# sbpjax 0.0.0\na: 1\n"), "sbpjax 0.0.0", "look for changes"),
    "a saved file that is damaged": (["run/config.yaml"], "damage config", "while parsing", "restore it"),
    "an override of a wrong name": ([TEXT, "trainer.max_stps=3"], None, "no 'max_stps' in trainer", "trainer.max_steps=3"),
    "an override without a value": ([TEXT, "trainer.max_steps"], None, "no value", "trainer.max_steps=100"),
    "an override of another kind": ([TEXT, "trainer.max_steps=few"], None, "'few' for 4", "trainer.max_steps=4"),
    "an optimizer's wrong argument": ([TEXT, "trainer.optimizer.lrate=1"], None, "options ['lrate']", "leave out lrate: AdamW(params, lr="),
    "an unknown axis": ([TEXT, "trainer.parallel.tensr=2"], None, "no 'tensr'", "trainer.parallel.tensor=2"),
    "an axis of no parts": ([TEXT, "trainer.parallel.data=0"], None, "data=0", "data=1"),
    "too few devices": ([TEXT, "trainer.parallel.data=16", "trainer.batch_size=16"], None, "8 devices", "axes whose product is at most 8"),
    "a batch that ranks cannot share": ([TEXT, "trainer.batch_size=9"], None, "batch_size=9", "batch_size=8"),
    "micro-batches that are not alike": ([TEXT, "trainer.options.accumulate=3"], None, "accumulate=3", "accumulate=1"),
    "more ranks than heads": ([TEXT, "trainer.parallel.tensor=4"], None, "2 heads", "tensor=2 at most"),
    "more stages than blocks": ([TEXT, "trainer.parallel.pipeline=4"], None, "2 blocks", "pipeline=2 at most"),
    "an unknown precision": ([TEXT, "trainer.options.amp=int8"], None, "amp='int8'", 'amp="bfloat16"'),
    "an unknown stage of ZeRO": ([TEXT, "trainer.options.zero=4"], None, "zero=4", "zero=1"),
    "an unknown option": ([TEXT, "trainer.options={acumulate: 2}"], None, "'acumulate'", "options={'accumulate': …}"),
    "a pipeline for the planner": ([TEXT, "trainer.parallel.pipeline=2", "--auto"], None, "pipeline=2 × data=2", "pipeline=1"),
    "no model": ([TEXT, "trainer.model=null"], None, "model=None", "model=…"),
    "no steps": ([TEXT, "trainer.max_steps=0"], None, "max_steps=0", "max_steps=1000"),
    "a missing file of tokens": ([TEXT, "trainer.data.file=pagse"], None, "no file pagse.idx", ""),
    "a missing index": ([TEXT], lambda folder: (folder / "pages.idx").unlink(), "no file pages.idx", ""),
    "a file of tokens that is cut off": ([TEXT], lambda folder: cut_short(folder / "pages.bin"), "", ""),
    "an index that is cut off": ([TEXT], lambda folder: cut_short(folder / "pages.idx", 3), "", ""),
    "an index of something else": ([TEXT], write("pages.idx", "hello, this is no index"), "", ""),
    "tokens of another tokenizer": ([TEXT], lambda folder: tokens_up_to(folder, 65), "a token 64", "vocab_size=65 or more"),
    "held-out tokens of another tokenizer": (
        [TEXT, "trainer.hooks.validation.data.file=others"],
        lambda folder: tokens_up_to(folder, 500, "others"),
        "a token 499",
        "vocab_size=500 or more",
    ),
    "samples longer than the model": ([TEXT, "trainer.data.length=17"], None, "samples of 17 tokens", "length=16"),
    "fewer samples than a batch": ([TEXT, "trainer.batch_size=64"], None, "37 samples, batch_size=64", "more samples"),
    "a best checkpoint of nothing": ([TEXT, "trainer.hooks.checkpoints.keep_best=1"], None, "keep_best=1", "metric="),
    "a file where the run is to be": ([TEXT, "trainer.out=pages.bin"], None, "a file", "trainer.out=pages.bin-run"),
    "a machine that nobody knows": ([TEXT, "--memory", "v0:4"], None, "", ""),
    "a directory with another run": ([TOWER], "run", "a checkpoint of step 4", "--resume, or trainer.out=run-2"),
    "another model than that of the run": (
        [TOWER, "--resume", "trainer.model.drop=0.5"], "run", "trainer.model.drop: 0.1 → 0.5", "trainer.model.drop=0.1",
    ),
    "evaluation without a checkpoint": ([TOWER, "--eval-only"], None, "no checkpoint in run", "train first"),
    "a checkpoint with a turned byte": ([TOWER, "--resume"], "turn", "", ""),
    "a checkpoint that is cut off": ([TOWER, "--resume"], "cut", "", ""),
    "a folder of a model that is not there": ([CLASSES, "trainer.model.directory=bse"], class_config.lay, "no folder", "hf download bse"),
    "a missing shard file": (
        [CLASSES], lambda folder: class_config.with_shard(folder, lambda file: file.unlink()), "model-00002-of", "",
    ),
    "a shard file that is cut off": ([CLASSES], lambda folder: class_config.with_shard(folder, cut_short), "ValueError: tensors", ""),
    "a field that the family does not know": ([CLASSES], class_config.with_field, "hidden_sizes=4", "write 'hidden_size'"),
    "a tokenizer of another model": (
        [CLASSES], lambda folder: class_config.lay(folder, vocabulary=20), "a token", "vocab_size=",
    ),
    "texts longer than the model": (
        [CLASSES], lambda folder: class_config.lay(folder, positions=5), "samples of", "length=5",
    ),
    "more classes than the head": ([CLASSES], lambda folder: class_config.lay(folder, kinds=3), "3 classes", "num_labels=3"),
    "masks of another vocabulary": (["c.py"], class_config.masked, "a token 499", "vocab_size=500 or more"),
}  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return the directory of a run with checkpoints."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        main([TOWER])
    return folder / "run"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tokens_up_to(tmp_path, 64)
    return tmp_path


def arrange(folder, done, finished):
    """Bring a folder into the state of a case."""
    if callable(done):
        done(folder)
    if isinstance(done, str):
        shutil.copytree(finished, folder / "run")
        arrays = folder / "run" / "checkpoints" / "step_000000004" / "arrays" / "00000.bin"
        if done == "damage config":
            (path := folder / "run" / "config.yaml").write_text(path.read_text() + "a: [1\n")
        elif done in ("turn", "cut"):
            {"turn": turn_a_byte, "cut": cut_short}[done](arrays)


def tree(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts}


@pytest.mark.parametrize("case", CASES)
def test_one_message_and_nothing_written(case, folder, finished):
    arguments, done, seen, fix = CASES[case]
    arrange(folder, done, finished)
    before = tree(folder)
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    lines = str(ended.value.code).splitlines()  # text as a code is exit code 1, and the text on stderr
    assert len(lines) == 4 and lines[0].startswith("error: "), ended.value.code
    assert lines[1].startswith("  seen: ") and lines[2].startswith("  rule: ") and lines[3].startswith("  fix:  ")
    assert seen in lines[1] and lines[3].removeprefix("  fix:  ").startswith(fix), ended.value.code
    assert all(len(line) > 9 for line in lines) and "<unknown>" not in lines[0]
    assert tree(folder) == before


def test_there_are_enough():
    assert len(CASES) >= 25
