"""`autograd.Function`: what forward returns, and which shapes of gradients backward may return."""

import pytest

import sbpjax


@pytest.mark.parametrize("way", ["data", "detach"])
def test_forward_that_writes_beside_its_input_returns_the_new_values(way):
    class Write(sbpjax.autograd.Function):
        @staticmethod
        def forward(ctx, x, value):
            (x.data if way == "data" else x.detach())[0] = value
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2, None

    x = sbpjax.zeros(3, requires_grad=True)
    y = Write.apply(x, 5.0)
    y.sum().backward()
    assert y.tolist() == x.tolist() == [5.0, 0.0, 0.0] and x.grad.tolist() == [2.0] * 3


@pytest.mark.parametrize("shape", [(3,), (1, 3), (), (1,), (4, 3), (4, 1)])
def test_gradient_of_a_broadcast_shape_is_summed_to_the_input(shape):
    class Wide(sbpjax.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g.expand(4, 3) * 2

    x = sbpjax.ones(shape, requires_grad=True)
    Wide.apply(x).sum().backward()
    assert x.grad.shape == x.shape and (x.grad == 24 / x.numel()).all()
    slope = sbpjax.func.grad(lambda v: Wide.apply(v).sum())(sbpjax.ones(shape))
    assert slope.shape == x.shape and (slope == 24 / x.numel()).all()


def test_gradient_of_another_shape_is_refused():
    class Narrow(sbpjax.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g[:2]

    x = sbpjax.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="expected shape compatible"):
        Narrow.apply(x).sum().backward()


@pytest.mark.parametrize("way", ["eager", "func", "graph"])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_wrong_number_of_gradients_is_refused(way, count):
    class Product(sbpjax.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            return x * factor

        @staticmethod
        def backward(ctx, g):
            return (g,) * count

    def loss(x):
        return Product.apply(x, 3.0).sum()

    x = sbpjax.ones(3, requires_grad=True)

    class Train(sbpjax.nn.Graph):
        def build(self, y):
            loss(y * x).backward()

    run = {"eager": lambda: loss(x).backward(), "func": lambda: sbpjax.func.grad(loss)(x), "graph": lambda: Train()(x)}
    with pytest.raises(RuntimeError, match=rf"ProductBackward returned an incorrect .* \(expected 2, got {count}\)"):
        run[way]()


@pytest.mark.parametrize("way", ["eager", "func"])
def test_further_gradients_that_are_none_are_taken(way):
    class Double(sbpjax.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2, None, None

    x = sbpjax.ones(3, requires_grad=True)
    if way == "eager":
        Double.apply(x).sum().backward()
    slope = x.grad if way == "eager" else sbpjax.func.grad(lambda v: Double.apply(v).sum())(x)
    assert (slope == 2).all()
