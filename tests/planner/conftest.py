"""Every test of the planner has a plan cache of its own, so that none reads another's plans."""

import pytest


@pytest.fixture(autouse=True)
def own_plan_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SBPJAX_CACHE_DIR", str(tmp_path))
