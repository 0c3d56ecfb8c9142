"""A table that keeps what was used last."""

from sbpjax._core.runtime.lru_cache import LRUCache, most_programs


def use(table, key):
    return table.get(key) or table.promote_older(key) or table.keep(key, f"value {key}")


def test_it_holds_no_more_than_it_may_and_drops_what_was_not_used():
    table = LRUCache(10)
    for i in range(100):
        use(table, i)
        assert use(table, "always") == "value always"
        assert len(table.everything()) <= 10
    assert table.get(99) and not table.get(3) and table.promote_older(3) is None


def test_what_was_used_in_the_last_half_is_still_there():
    table = LRUCache(10)
    for i in range(40):
        use(table, i)
    assert [k for k in range(40) if table.get(k) or table.promote_older(k)][-5:] == [35, 36, 37, 38, 39]


def test_clear():
    table = LRUCache(4)
    [use(table, i) for i in range(4)]
    table.clear()
    assert table.everything() == [] and table.promote_older(0) is None


def test_the_size_is_the_users(monkeypatch):
    assert most_programs() == 1024
    monkeypatch.setenv("SBPJAX_EAGER_PROGRAMS", "64")
    assert most_programs() == 64
