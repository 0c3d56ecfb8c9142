"""The table in `docs/how_to/vision.md` says what the models are."""

import pytest

from tests.vision.zoo_table import PAGE, SHOWN, row

DEFAULT = ("resnet18", "vit_tiny_patch16_224")


@pytest.mark.parametrize("name", [n if n in DEFAULT else pytest.param(n, marks=pytest.mark.exhaustive) for n in SHOWN])
def test_rows(name):
    assert row(name) in PAGE.read_text().splitlines()
