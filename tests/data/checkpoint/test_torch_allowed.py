"""What a user may allow PyTorch's files: `weights_only` and `add_safe_globals`; and what is said of the others."""

import argparse

import pytest
import torch

import sbpjax
from sbpjax import checkpoint, errors, mock_torch


@pytest.fixture
def plain(tmp_path):
    torch.save({"x": torch.ones(2)}, tmp_path / "plain.pth")
    return tmp_path / "plain.pth"


@pytest.fixture
def named(tmp_path):
    torch.save({"x": torch.ones(2), "args": argparse.Namespace(lr=0.1)}, tmp_path / "named.pth")
    return tmp_path / "named.pth"


@pytest.mark.parametrize("weights_only", [True, False, None])
def test_a_plain_state(plain, weights_only):
    assert sbpjax.load(plain, weights_only=weights_only)["x"].tolist() == [1, 1]
    assert sbpjax.load(plain, map_location="cpu", weights_only=weights_only)["x"].tolist() == [1, 1]


@pytest.mark.parametrize("weights_only", [True, False])
def test_a_directory(tmp_path, weights_only):
    sbpjax.save({"x": sbpjax.ones(2)}, tmp_path / "last")
    assert sbpjax.load(tmp_path / "last", weights_only=weights_only)["x"].tolist() == [1, 1]


@pytest.mark.parametrize("options", [{}, {"weights_only": True}, {"weights_only": None}])
def test_a_class_is_refused_and_the_fix_says_how_it_is_not(named, options):
    fix = r"argparse\.Namespace(.|\n)*fix:.*weights_only=False.*add_safe_globals"
    with pytest.raises(errors.CheckpointError, match=fix):
        sbpjax.load(named, **options)
    with mock_torch.enable(), pytest.raises(errors.CheckpointError, match=fix):
        import torch as alias

        alias.load(named, **options)


def test_what_the_fix_says_works(named):
    found = sbpjax.load(named, weights_only=False)
    assert found["args"] == argparse.Namespace(lr=0.1) and found["x"].tolist() == [1, 1]
    with checkpoint.safe_globals([argparse.Namespace]):
        assert sbpjax.load(named)["args"].lr == 0.1
    with pytest.raises(errors.CheckpointError):
        sbpjax.load(named)


@pytest.mark.parametrize("weights_only", [True, False])
def test_a_file_older_than_zip(tmp_path, weights_only):
    path = tmp_path / "old.pth"
    torch.save({"x": torch.ones(2)}, path, _use_new_zipfile_serialization=False)
    rule = r"zip files only: torch\.save writes them since 1\.6"
    with pytest.raises(errors.CheckpointError, match=rule) as found:
        sbpjax.load(path, weights_only=weights_only)
    assert "BadZipFile" not in str(found.value)
    with pytest.raises(errors.CheckpointError, match=rule):
        checkpoint.load_torch(path)
    with mock_torch.enable(), pytest.raises(errors.CheckpointError, match=rule):
        import torch as alias

        alias.load(path, weights_only=weights_only)
