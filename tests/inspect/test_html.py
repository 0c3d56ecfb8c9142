"""The page of a graph: folds per module, ops with their sbp, nothing from outside."""

from html.parser import HTMLParser

import sbpjax as flow
from sbpjax import nn
from sbpjax.graph import TensorSpec
from tests.support import graphs


class Balanced(HTMLParser):
    """Fails on tags that are not closed in order; counts folds."""

    def __init__(self, text):
        super().__init__()
        self.stack, self.folds, self.depth = [], 0, 0
        self.feed(text)
        assert not self.stack

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "link", "img") and not any(k in ("src", "href") for k, _ in attrs)
        self.stack.append(tag)
        self.folds += tag == "details"
        self.depth = max(self.depth, self.stack.count("details"))

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag


class Train(nn.Graph):
    def __init__(self, model, micro=1):
        super().__init__()
        self.model = model
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))
        self.config.set_gradient_accumulation_steps(micro)

    def build(self, x):
        loss = (self.model(x) ** 2).mean()
        loss.backward()
        return loss


def made(micro=1):
    place = flow.placement("cpu", [0, 1])
    model = nn.Sequential(nn.Linear(64, 64), nn.Sequential(nn.ReLU(), nn.Linear(64, 64))).to_global(place, "B")
    return Train(model, micro), TensorSpec((4096, 64), placement=place, sbp="S0")


def test_before_it_is_built():
    graph, _ = made()
    text = graph._repr_html_()
    assert Balanced(text).folds == 5 and "not built yet" in text and "float32[64, 64]" in text


def test_modules_fold_and_ops_have_their_sbp():
    graph, spec = made()
    graph.build_graph(spec)
    text = graph._repr_html_()
    page = Balanced(text)
    assert page.depth == 3 and page.folds >= 6  # five modules, the optimizer, the loss that is in none
    assert "not compiled yet" in text and "traced in" in text and "moved per device and step" in text
    for word in ("dot_general", "S0 | B → S0", "(backward)", "SGD", "(no module)", f"{__file__}:"):
        assert word in text, word
    graph.compile(spec)
    assert "compiled in" in graph._repr_html_() and "compiled in" in repr(graph)


def test_ops_in_loops_say_how_often():
    graph, spec = made(micro=4)
    graph.build_graph(spec)
    assert "× 4" in graph._repr_html_()


def test_on_one_device_and_with_names_that_need_escapes():
    class Odd(nn.Module):
        def extra_repr(self):
            return "<script>"

        def forward(self, x):
            return x + 1

    graph = graphs.graph_of(lambda odd, x: odd(x), Odd())
    graph(flow.ones(2))
    text = graph._repr_html_()
    Balanced(text)
    assert "on one device" in text and "&lt;script&gt;" in text
