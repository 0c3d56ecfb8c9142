"""What a notebook shows of placements and sbps."""

import pytest

import sbpjax as flow


@pytest.mark.parametrize(
    ("ranks", "rows"),
    [
        ([2, 0, 1], ["<tr><th></th><th>a0=0</th><th>a0=1</th><th>a0=2</th></tr>",
                     "<tr><td></td><td>2</td><td>0</td><td>1</td></tr>"]),
        ([[0, 1], [2, 3]], ["<tr><td>a0=0</td><td>0</td><td>1</td></tr>",
                            "<tr><td>a0=1</td><td>2</td><td>3</td></tr>"]),
        ([[[0, 1], [2, 3]], [[4, 5], [6, 7]]], ["<tr><td>a0=1, a1=0</td><td>4</td><td>5</td></tr>"]),
    ],
)  # fmt: skip
def test_a_placement_is_a_table_of_its_ranks(ranks, rows):
    page = flow.placement("cpu", ranks)._repr_html_()
    assert page.startswith("<p>sbpjax.placement(type=&quot;cpu&quot;, ranks=[")
    assert all(row in page for row in rows)


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (flow.sbp.split(1), "sbpjax.sbp.split(dim=1) (S1): each rank holds a part of dim 1"),
        (flow.sbp.broadcast, "sbpjax.sbp.broadcast (B): each rank holds all of the tensor"),
        (flow.sbp.partial_sum, "sbpjax.sbp.partial_sum (P): each rank holds a summand; their sum is the tensor"),
    ],
)
def test_an_sbp_says_what_ranks_hold(entry, text):
    assert entry._repr_html_() == f"<p>{text}</p>"


def test_a_tensor_is_what_it_prints_and_where_its_parts_lie(monkeypatch):
    x = flow.ones(2, 2)
    assert x._repr_html_() == "<pre>tensor([[1., 1.],\n        [1., 1.]])</pre>"
    assert flow.ones(2)._repr_html_() == "<pre>tensor([1., 1.])</pre>"
    x = x.to_global(flow.placement("cpu", [0, 1]), "S0")
    page = x._repr_html_()
    assert page.startswith("<pre>tensor([[1., 1.],") and page.count("<rect") == 2
    assert "<svg" not in x[:0]._repr_html_()
    monkeypatch.setattr("sbpjax._core.inspect.notebook._MOST_DRAWN", 1)
    assert "<svg" not in x._repr_html_()


def test_pictures_of_grids_and_summands():
    grid = flow.placement("cpu", [[0, 1], [2, 3]])
    x = flow.ones(4, 6, placement=grid, sbp=["S0", "S1"])
    assert flow.visualize(x).svg().count("<rect") == 4
    summands = flow.visualize(x.to_global(sbp=["S0", "P"]))
    assert summands.svg().count("<rect") == 4 and "summand 1" in summands.svg()
    cube = flow.placement("cpu", [[[0, 1], [2, 3]], [[4, 5], [6, 7]]])
    parts = flow.visualize(flow.ones(2, 4, 6, placement=cube, sbp=["S0", "S1", "S2"]))
    assert parts.svg().count("<rect") == 8 and "[0:1, …]" in parts.svg()
