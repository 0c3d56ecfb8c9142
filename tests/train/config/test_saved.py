"""The file that is saved with a run says its version, and what has changed since."""

import pytest
from omegaconf import OmegaConf

import sbpjax
from sbpjax.errors import ConfigError, TrainError
from sbpjax.train.config import changes, load_config, save_config


def test_changes_by_name():
    before = OmegaConf.create({"a": {"b": 1, "c": [1, {"d": 2}]}, "e": "${a.b}"})
    after = OmegaConf.create({"a": {"b": 1, "c": [1, {"d": 3}]}, "e": 1, "f": True})
    assert changes(before, after) == ["a.c.1.d: 2 → 3", "f: None → True"]


@pytest.mark.parametrize("tree", [{"a": "${b}", "b": "${a}"}, {"a": "${a}"}, {"a": ["${x.y}"]}, {"a": "${nothing:1}"}])
def test_interpolations_that_lead_nowhere_are_not_compared(tree):
    with pytest.raises(ConfigError, match=r"(?s)reading the saved configuration.*seen.*\$\{a\.b\} refers.*fix"):
        changes(OmegaConf.create(tree), OmegaConf.create({"a": 1}))


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("# sbpjax 0.0.1\na: 1\n", "sbpjax 0.0.1"),
        ("a: 1\n", "a file without a version"),
        (f"# sbpjax {sbpjax.__version__}\na: [1\n", "while parsing"),
        (f"# sbpjax {sbpjax.__version__}\n- 1\n", "no names"),
    ],
)
def test_files_of_another_version_or_damaged(text, seen, tmp_path):
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(ConfigError) as error:
        load_config(tmp_path / "config.yaml")
    assert f"seen: {seen}" in str(error.value)


def test_nothing_is_half_written(tmp_path, monkeypatch):
    save_config(OmegaConf.create({"a": 1}), tmp_path)
    with monkeypatch.context() as patch, pytest.raises(TrainError, match="No space left.*\n.*\n.*make room"):
        patch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        save_config(OmegaConf.create({"a": 2}), tmp_path)
    assert load_config(tmp_path / "config.yaml").a == 1
