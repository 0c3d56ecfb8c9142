"""Options of stores and tables."""

import pytest

from sbpjax import one_embedding as oe
from sbpjax.errors import TableError
from sbpjax.one_embedding.options import cache_rows


def test_sizes_of_caches():
    device = oe.make_device_mem_store_options(["/a", "/b"], 100)
    assert device["persistent_path"] == "/a" and cache_rows(device, 64) == 101
    host = oe.make_cached_host_mem_store_options(1, "/a", 10**6, size_factor=3)
    assert cache_rows(host, 64) == 2**20 // (64 * 3)
    assert cache_rows(oe.make_cached_host_mem_store_options(1, "/a", 10), 64) == 11  # no more than the store has
    assert oe.make_cached_ssd_store_options(1, "/a")["capacity"] == 2**40


def test_tables():
    one = oe.make_normal_initializer(0.0, 1.0)
    assert oe.make_table(one) == oe.make_table_options(one) == {"columns": [{"initializer": one}]}
    assert oe.make_table_options([oe.make_column_options(one), one])["columns"] == [{"initializer": one}] * 2


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (lambda: oe.make_device_mem_store_options("/a", 0), "capacity=0"),
        (lambda: oe.make_cached_host_mem_store_options(0, "/a", 10), "0 MiB"),
        (lambda: oe.make_cached_ssd_store_options(1, "/a", 10, size_factor=0), "size_factor=0"),
        (lambda: oe.make_cached_ssd_store_options(1, "/a", 10, evict="random"), "evict='random'"),
    ],
)
def test_misuse(ask, expected):
    with pytest.raises(TableError, match=expected):
        ask()
