"""The LoRA example, shorter: an adapter learns documentation on top of a base that is a folder."""

import json

import pytest

from examples.lora import train


def test_the_adapter_learns_documentation(tmp_path):
    lines = []
    before, after = train.run(tmp_path, base_steps=60, steps=40, write_text=lines.append)
    assert after < before - 0.1
    assert {folder.name for folder in tmp_path.iterdir()} == {"base", "adapter", "tuned"}
    values = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    assert values["base_model_name_or_path"] == str(tmp_path / "base") and len(values["target_modules"]) == 7
    assert any("the adapter, 13% of all parameters" in line for line in lines)


def test_too_little_gain_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(train, "run", lambda *_: (2.0, 1.9))
    monkeypatch.setattr("sys.argv", ["train", "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match="gains 0.100 nats per byte, and must gain 0.3"):
        train.main()
