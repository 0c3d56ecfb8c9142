"""Tables and reports as text and as HTML."""

from sbpjax._core.inspect.display import DisplayedReport, Table


class Sums(DisplayedReport):
    def _blocks(self):
        yield "sums < all", Table([("all-gather", "42.4 MB"), ("all-reduce", "0 B")], ("kind", "bytes"), right=(1,))
        yield Table([("a&b", "")], faint=(0,)), "two\nlines"


def test_text():
    text = "sums < all\nkind          bytes\nall-gather  42.4 MB\nall-reduce      0 B\n\na&b\ntwo\nlines"
    assert str(Sums()) == repr(Sums()) == text


def test_html():
    page = Sums()._repr_html_()
    assert page.startswith("<p>sums &lt; all</p><table><tr><th>kind</th><th>bytes</th></tr><tr><td>all-gather</td>")
    assert page.endswith("<table><tr class=b><td>a&amp;b</td><td></td></tr></table><pre>two\nlines</pre>")
