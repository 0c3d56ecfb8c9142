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
        (flow.sbp.split(-1), "sbpjax.sbp.split(dim=-1)"),
        (flow.sbp.broadcast, "sbpjax.sbp.broadcast (B): each rank holds all of the tensor"),
        (flow.sbp.partial_sum, "sbpjax.sbp.partial_sum (P): each rank holds a summand; their sum is the tensor"),
    ],
)
def test_an_sbp_says_what_ranks_hold(entry, text):
    assert entry._repr_html_() == f"<p>{text}</p>"
