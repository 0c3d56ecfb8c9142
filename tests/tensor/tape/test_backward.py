"""backward, grad, hooks, grad modes, Function, checkpoint: PyTorch's behaviour on local tensors."""

# ruff: noqa: E501 (a snippet is one line)

import pytest

import sbpjax as flow
from sbpjax.nn import functional as F
from tests.tensor.both import same

A = "a = T.tensor([1., -2., 3.], requires_grad=True); b = T.tensor([2., 0.5, -1.], requires_grad=True); "

CASES = {
    "sum": A + "(a * b + a).sum().backward(); R = [a.grad, b.grad]",
    "accumulates": A + "(a * b).sum().backward(); (a * a).sum().backward(); R = [a.grad, b.grad]",
    "reset": A
    + "(a * b).sum().backward(); a.grad = None; b.grad.zero_(); (a * b).sum().backward(); R = [a.grad, b.grad]",
    "diamond": A + "c = a * 2; d = c * c + c; (d * c).sum().backward(); R = a.grad",
    "broadcast": "a = T.ones(2, 3, requires_grad=True); b = T.ones(3, requires_grad=True); c = T.tensor(2., requires_grad=True); (a * b * c).sum().backward(); R = [a.grad, b.grad, c.grad]",
    "gradient argument": A + "(a * b).backward(T.tensor([1., 2., 3.])); R = [a.grad, b.grad]",
    "non-leaf grad_fn": A
    + "c = a * b; R = [c.requires_grad, c.is_leaf, c.grad_fn is not None, a.grad_fn is None, a.is_leaf]",
    "integers": "a = T.tensor([1., 2.], requires_grad=True); i = T.tensor([3, 4]); (a * i).sum().backward(); R = [a.grad, i.requires_grad]",
    "mixed dtypes": "a = T.tensor([1., 2.], requires_grad=True); d = T.tensor([3., 4.], dtype=T.float64, requires_grad=True); (a * d).sum().backward(); R = [a.grad, d.grad]",
    "half": "a = T.tensor([1., 2.], dtype=T.float16, requires_grad=True); (a.float() * 3).sum().backward(); R = a.grad",
    "unused output": "a = T.arange(6.).reshape(2, 3).requires_grad_(); a.max(1).values.sum().backward(); R = a.grad",
    "topk": "a = T.tensor([3., 1., 2.], requires_grad=True); v, i = a.topk(2); (v * T.tensor([1., 10.])).sum().backward(); R = [a.grad, i.requires_grad]",
    "two outputs": "a = T.arange(6.).reshape(2, 3).requires_grad_(); v, m = T.var_mean(a, 1); (v.sum() + 2 * m.sum()).backward(); R = a.grad",
    "split outputs": "a = T.arange(6.).requires_grad_(); x, y = a.split(3); (x * 2 + y * y).sum().backward(); R = a.grad",
    "one split output": "a = T.arange(6.).requires_grad_(); x, y = a.chunk(2); y.sum().backward(); R = a.grad",
    "where": A + "T.where(a > 0, a * b, b).sum().backward(); R = [a.grad, b.grad]",
    "number on the left": A + "(1 / a + 2 ** b + 3 - a).sum().backward(); R = [a.grad, b.grad]",
    "retain_graph": A + "c = (a * b).sum(); c.backward(retain_graph=True); c.backward(); R = a.grad",
    "nothing saved twice": A + "c = (a + b).sum(); c.backward(); c.backward(); R = a.grad",
    "retain_grad": A + "c = a * b; c.retain_grad(); (c * c).sum().backward(); R = [c.grad, c.retains_grad, a.grad]",
    "retain_grad on leaf": A + "a.retain_grad(); (a * b).sum().backward(); R = a.grad",
    "grad": A + "R = list(T.autograd.grad((a * b).sum(), [a, b])) + [a.grad]",
    "grad of non-leaf": A + "c = a * b; R = list(T.autograd.grad((c * c).sum(), c))",
    "grad of intermediate and leaf": A + "c = a * b; R = list(T.autograd.grad((c * c * a).sum(), [c, a]))",
    "grad_outputs": A + "R = list(T.autograd.grad(a * b, a, T.tensor([1., 2., 3.])))",
    "allow_unused": A + "R = list(T.autograd.grad((a * a).sum(), [a, b], allow_unused=True))",
    "materialize_grads": A + "R = list(T.autograd.grad((a * a).sum(), [a, b], materialize_grads=True))",
    "several outputs": A + "R = list(T.autograd.grad([(a * b).sum(), (a * a).sum()], [a, b]))",
    "autograd.backward": A + "T.autograd.backward([(a * b).sum(), a * a], [None, T.ones(3)]); R = [a.grad, b.grad]",
    "backward inputs": A + "(a * b).sum().backward(inputs=[a]); R = [a.grad, b.grad]",
    "double": A
    + "g, = T.autograd.grad((a ** 3 * b).sum(), a, create_graph=True); (g * g).sum().backward(); R = [g, a.grad, b.grad]",
    "double through exp": A
    + "g, = T.autograd.grad(T.exp(a * b).sum(), a, create_graph=True); g.sum().backward(); R = [a.grad, b.grad]",
    "double through softmax": A
    + "g, = T.autograd.grad((a.softmax(0) * b).sum(), a, create_graph=True); (g ** 2).sum().backward(); R = [a.grad, b.grad]",
    "double through matmul": "a = T.arange(6.).reshape(2, 3).requires_grad_(); b = T.ones(3, 2).requires_grad_(); g, = T.autograd.grad((a @ b).pow(2).sum(), b, create_graph=True); g.sum().backward(); R = [a.grad, b.grad]",
    "triple": "a = T.tensor(2., requires_grad=True); g = a ** 4\nfor _ in range(3): g, = T.autograd.grad(g, a, create_graph=True)\nR = g",
    "backward create_graph": A
    + "import warnings; warnings.simplefilter('ignore'); (a ** 3).sum().backward(create_graph=True); g = a.grad; R = list(T.autograd.grad(g.sum(), a))",
    "double through views": "a = T.arange(4.).requires_grad_(); g, = T.autograd.grad((a.view(2, 2).t()[0] ** 3).sum(), a, create_graph=True); g.sum().backward(); R = a.grad",
    "double through max": "a = T.tensor([[1., 3.], [2., 0.]], requires_grad=True); g, = T.autograd.grad((a.max(1).values ** 3).sum(), a, create_graph=True); g.sum().backward(); R = a.grad",
    "no_grad": A + "with T.no_grad(): c = a * b\nR = [c.requires_grad, T.is_grad_enabled()]",
    "no_grad decorator": A + "@T.no_grad()\ndef f(x): return x * 2\nR = [f(a).requires_grad, (a * 2).requires_grad]",
    "enable_grad": A + "with T.no_grad():\n with T.enable_grad(): c = a * b\nR = c.requires_grad",
    "set_grad_enabled": A + "with T.set_grad_enabled(False): c = a * b\nR = [c.requires_grad, T.is_grad_enabled()]",
    "set_grad_enabled call": A
    + "T.set_grad_enabled(False); c = (a * b).requires_grad; T.set_grad_enabled(True); R = [c, T.is_grad_enabled()]",
    "inference_mode": A
    + "with T.inference_mode(): c = a * b; m = T.is_inference_mode_enabled()\nR = [c.requires_grad, m]",
    "no_grad generator": A
    + "@T.no_grad()\ndef f():\n yield (a * 2).requires_grad\n yield T.is_grad_enabled()\nR = [(v, T.is_grad_enabled()) for v in f()]",
    "no_grad error restores": A
    + "try:\n with T.no_grad(): raise ValueError\nexcept ValueError: pass\nR = T.is_grad_enabled()",
    "detach": A + "c = (a * b).detach(); R = [c.requires_grad, c.is_leaf, c]",
    "detach_": A + "c = a * b; c.detach_(); R = [c.requires_grad, c.is_leaf]",
    "requires_grad_": "a = T.ones(2); a.requires_grad_(); R = [a.requires_grad, a.requires_grad_(False).requires_grad]",
    "requires_grad attribute": "a = T.ones(2); a.requires_grad = True; R = a.requires_grad",
    "leaf hook": A
    + "h = []; a.register_hook(lambda g: h.append(g.tolist())); (a * b).sum().backward(); R = [h, a.grad]",
    "hook changes": A
    + "c = a * b; c.register_hook(lambda g: g * 10); a.register_hook(lambda g: g + 1); (c * c).sum().backward(); R = [a.grad, b.grad]",
    "hook once with sum": A
    + "h = []; a.register_hook(lambda g: h.append(g.tolist())); (a * b + a * a).sum().backward(); R = h",
    "hook removed": A
    + "h = a.register_hook(lambda g: g * 100); h.remove(); h.remove(); (a * b).sum().backward(); R = a.grad",
    "hook order": A
    + "h = []; c = a * b; d = c + a\nfor n, t in (('a', a), ('b', b), ('c', c), ('d', d)): t.register_hook(lambda g, n=n: h.append(n))\nd.sum().backward(); R = h",
    "hooks chain": A
    + "a.register_hook(lambda g: g * 2); a.register_hook(lambda g: g + 1); a.sum().backward(); R = a.grad",
    "retain sees hooks": A
    + "c = a * b; c.register_hook(lambda g: g * 3); c.retain_grad(); c.sum().backward(); R = [c.grad, a.grad]",
    "grad sees hooks": A + "c = a * b; c.register_hook(lambda g: g * 3); R = list(T.autograd.grad(c.sum(), [c, a]))",
    "post accumulate": A
    + "h = []; a.register_post_accumulate_grad_hook(lambda t: h.append(t.grad.tolist())); (a * b).sum().backward(); (a * b).sum().backward(); R = h",
    "node hooks": A
    + "h = []; c = a * b; c.grad_fn.register_hook(lambda i, o: h.append((len(i), o[0].tolist()))); c.grad_fn.register_prehook(lambda o: h.append('pre')); c.sum().backward(); R = h",
    "grad assigned": A + "a.grad = T.ones(3); (a * b).sum().backward(); R = a.grad",
    "deep": "a = T.tensor(1., requires_grad=True); c = a\nfor _ in range(3000): c = c + 1\nc.backward(); R = a.grad",
    "deepcopy": "import copy; a = T.ones(2, requires_grad=True); (a * 2).sum().backward(); c = copy.deepcopy(a); R = [c, c.grad, c.requires_grad, c is a]",
    "pickle": "import pickle; a = T.ones(2, requires_grad=True); c = pickle.loads(pickle.dumps(a)); R = [c, c.requires_grad]",
    "in-place chain": A + "c = a * 2; c.mul_(b).add_(1).pow_(2); c.sum().backward(); R = [c, a.grad, b.grad]",
    "in-place saves nothing": A
    + "c = a * 2; d = c + b; c.mul_(3); (d.sum() + c.sum()).backward(); R = [a.grad, b.grad]",
    "relu_": A + "c = a * b; c.relu_(); c.sum().backward(); R = [c, a.grad]",
    "exp_": A + "c = a * b; c.exp_(); c.sum().backward(); R = [c, a.grad]",
    "copy_ both": A + "c = T.zeros(3); c.copy_(a * b); c.sum().backward(); R = [a.grad, c.requires_grad]",
    "fill_ with tensor": "a = T.tensor(3., requires_grad=True); c = T.zeros(2); c.fill_(a); c.sum().backward(); R = [c, a.grad]",
    "next_functions": A + "n = (a * b).sum().grad_fn; R = [len(n.next_functions), n.next_functions[0][1]]",
}


@pytest.mark.parametrize("code", CASES.values(), ids=CASES.keys())
def test_cases(code):
    same(code, rtol=1e-5, atol=1e-5)


ERRORS = {
    "no grad at all": "T.ones(2).sum().backward(); R = 0",
    "not a scalar": A + "(a * b).backward(); R = 0",
    "gradient shape": A + "(a * b).backward(T.ones(2)); R = 0",
    "freed": A + "c = (a * b).sum(); c.backward(); c.backward(); R = 0",
    "freed through shared part": A + "c = a * b; c.sum().backward(); (c * 2).sum().backward(); R = 0",
    "unused input": A + "T.autograd.grad((a * a).sum(), [a, b]); R = 0",
    "input without grad": A + "T.autograd.grad((a * a).sum(), T.ones(1)); R = 0",
    "hook without grad": "T.ones(1).register_hook(print); R = 0",
    "retain_grad without grad": "T.ones(1).retain_grad(); R = 0",
    "grad shape": A + "a.grad = T.ones(2); R = 0",
    "grad dtype": A + "a.grad = T.ones(3, dtype=T.float64); R = 0",
    "grad type": A + "a.grad = 1; R = 0",
    "post hook on non-leaf": A + "(a * b).register_post_accumulate_grad_hook(print); R = 0",
    "out with grad": A + "T.add(a, b, out=T.zeros(3)); R = 0",
}


@pytest.mark.parametrize("code", ERRORS.values(), ids=ERRORS.keys())
def test_errors(code):
    same(code)


FUNCTIONS = """
class Cube(T.autograd.Function):
    @staticmethod
    def forward(ctx, x, k=1.0):
        ctx.save_for_backward(x)
        ctx.k = k
        return k * x * x * x
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 3 * ctx.k * x * x * g, None
class TwoOut(T.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.needs = ctx.needs_input_grad
        i = (x > 0).to(T.int64)
        ctx.mark_non_differentiable(i)
        ctx.save_for_backward(x, y)
        return x * y, x + y, i
    @staticmethod
    def backward(ctx, g1, g2, g3):
        x, y = ctx.saved_tensors
        return g1 * y + g2, g1 * x + g2
class SavesOutput(T.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y
    @staticmethod
    def backward(ctx, g):
        y, = ctx.saved_tensors
        return y * g
class Once(T.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    @T.autograd.function.once_differentiable
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 2 * x * g
class Setup(T.autograd.Function):
    @staticmethod
    def forward(x, k):
        return x * k
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.k = inputs[1]
    @staticmethod
    def backward(ctx, g):
        return g * ctx.k, None
class Double(T.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x
    @staticmethod
    def backward(ctx, g):
        return g * 2
class NoZeros(T.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 1, x * 2
    @staticmethod
    def backward(ctx, g, h):
        seen.append((g is None, h is None))
        return g
seen = []
"""
FUNCTION_CASES = {
    "values": "y = Cube.apply(a, 2.0); y.sum().backward(); R = [y, a.grad]",
    "double": "g, = T.autograd.grad(Cube.apply(a).sum(), a, create_graph=True); g.sum().backward(); R = [g, a.grad]",
    "two outputs": "p, s, i = TwoOut.apply(a, b); (p.sum() + 2 * s.sum()).backward(); R = [a.grad, b.grad, i, i.requires_grad]",
    "one of two outputs": "p, s, i = TwoOut.apply(a, b); s.sum().backward(); R = [a.grad, b.grad]",
    "needs_input_grad": "p, s, i = TwoOut.apply(a, b.detach()); p.sum().backward(); R = [a.grad, b.grad]",
    "saves output": "y = SavesOutput.apply(a); y.sum().backward(); R = a.grad",
    "saves output double": "y = SavesOutput.apply(a); g, = T.autograd.grad(y.sum(), a, create_graph=True); g.sum().backward(); R = a.grad",
    "no grad": "with T.no_grad(): y = Cube.apply(a)\nR = y.requires_grad",
    "grad_fn name": "R = [Cube.apply(a).grad_fn.name(), Cube.apply(a).grad_fn is not None]",
    "once": "y = Once.apply(a); y.sum().backward(); R = a.grad",
    "setup_context": "y = Setup.apply(a, 3.0); y.sum().backward(); R = a.grad",
    "mark_dirty": "c = a * 1; y = Double.apply(c); y.sum().backward(); R = [y is c, c, a.grad]",
    "materialize off": "y, z = NoZeros.apply(a); y.sum().backward(); R = [seen, a.grad]",
    "keep graph": "y = Cube.apply(a); y.sum().backward(retain_graph=True); y.sum().backward(); R = a.grad",
}
FUNCTION_ERRORS = {
    "freed": "y = Cube.apply(a).sum(); y.backward(); y.backward(); R = 0",
    "saved changed": "c = a * 1; y = Cube.apply(c); c.add_(1); y.sum().backward(); R = 0",
    "once twice": "g, = T.autograd.grad(Once.apply(a).sum(), a, create_graph=True); g.sum().backward(); R = 0",
    "too few gradients": "class F(T.autograd.Function):\n forward = staticmethod(lambda ctx, x, y: x * y)\n backward = staticmethod(lambda ctx, g: g)\nF.apply(a, b).sum().backward(); R = 0",
    "gradient is no tensor": "class F(T.autograd.Function):\n forward = staticmethod(lambda ctx, x: x * 2)\n backward = staticmethod(lambda ctx, g: 'g')\nF.apply(a).sum().backward(); R = 0",
}


@pytest.mark.parametrize(
    "code", [*FUNCTION_CASES.values(), *FUNCTION_ERRORS.values()], ids=[*FUNCTION_CASES, *FUNCTION_ERRORS]
)
def test_function(code):
    code = FUNCTIONS + A + "\n" + code
    same(
        code.replace(
            "T.autograd.function.once", "(T.autograd.function if hasattr(T.autograd, 'function') else T.autograd).once"
        )
    )


@pytest.mark.parametrize("missing", ["forward", "backward"])
def test_a_function_says_which_method_it_lacks(missing):
    class Half(flow.autograd.Function):
        if missing != "forward":

            @staticmethod
            def forward(ctx, x):
                return x * 1

    with pytest.raises(NotImplementedError, match=rf"@staticmethod def {missing}\(ctx") as caught:
        Half.apply(flow.ones(2, requires_grad=True)).sum().backward()
    assert "\n  rule: a Function defines forward, and backward" in str(caught.value)


def test_a_gradient_that_is_a_cotangent_is_handed_on_without_a_program():
    x, y, row = flow.ones(2, 3, requires_grad=True), flow.ones(2, 3, requires_grad=True), flow.ones(3)
    z = x + y
    entry = z.grad_fn.entry
    assert entry.passed == (0, 0) and entry.rest is None
    z.sum().backward()
    assert x.grad._array is y.grad._array
    x.grad.mul_(2)
    assert x.grad.tolist() == [[2.0] * 3] * 2 and y.grad.tolist() == [[1.0] * 3] * 2
    entry = (x - row.requires_grad_()).grad_fn.entry
    assert entry.passed == (0, None) and entry.rest is not None
    (x - row).backward(flow.arange(6.0).reshape(2, 3))
    assert row.grad.tolist() == [-3.0, -5.0, -7.0] and x.grad.tolist() == [[2.0, 3.0, 4.0], [5.0, 6.0, 7.0]]


def test_gradients_that_meet_are_added_by_the_program_of_the_later_one(monkeypatch):
    from sbpjax._core.tensor.dispatch.local import LocalNode

    onto = []
    whole = LocalNode.backward_onto
    monkeypatch.setattr(
        LocalNode, "backward_onto", lambda self, g, places, held: onto.append(places) or whole(self, g, places, held)
    )
    w = flow.tensor([[2.0, 1.0], [0.0, 3.0]]).requires_grad_()
    x = flow.tensor([[1.0, 2.0]]).requires_grad_()
    y = x * 2.0
    z = y + y @ w + (y * y) @ w  # y and w are used several times
    z.sum().backward()
    assert onto
    # y = [2, 4]: dz/dy = 1 + w 1 + 2 y (w 1), and dw = (y + y²) 1
    assert x.grad.tolist() == [[2 * (1 + 3 + 2 * 2 * 3), 2 * (1 + 3 + 2 * 4 * 3)]]
    assert w.grad.tolist() == [[6.0, 6.0], [20.0, 20.0]]


def test_adding_onto_checks_what_was_saved():
    x = flow.ones(3).requires_grad_()
    y = x * 2.0
    a, b = y.exp(), y * 3.0
    c = b.sin()
    b.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        (a + c + b).sum().backward()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.avg_pool2d(x, 2),
        lambda x: F.adaptive_avg_pool2d(x, 2),
        lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
        lambda x: x.pow(1),
    ],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_second_derivative_without_influence_is_zero(function, compiled):
    """PyTorch records the input in the backward of these ops, though the gradient does not depend on it."""

    def second(x):
        y = function(x)
        v = flow.ones(*y.shape).requires_grad_()
        (first,) = flow.autograd.grad(y, x, v, create_graph=True)
        return flow.autograd.grad(first.square().sum(), (x, v))

    def run(x):
        return second(x.detach().requires_grad_())

    of_x, of_v = (flow.compile(run) if compiled else run)(flow.arange(48.0).reshape(1, 3, 4, 4))
    assert not of_x.any() and of_v.any()
