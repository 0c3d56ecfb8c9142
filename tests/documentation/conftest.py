"""What pages and examples register is gone behind them: other tests of the process count the models."""

import pytest

from sbpjax.vision.models import registry


@pytest.fixture(autouse=True)
def models_by_name(monkeypatch):
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
