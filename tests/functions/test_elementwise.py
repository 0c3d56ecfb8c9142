"""Functions, methods and operators as PyTorch has them: values, dtypes, promotion, call forms."""

# ruff: noqa: E501 (a snippet is one line)

import pytest

from tests.tensor.both import same

SETUP = (
    "x = T.tensor([[1.5, -2., 0.25], [3., -0.5, 2.]]); y = T.tensor([[2., 3., -1.], [0.5, 4., 1.]]); "
    "u = T.tensor([[0.5, 0.2, 0.9], [0.1, 0.7, 0.3]]); i = T.tensor([[7, -3, 2], [5, 0, -8]]); j = T.tensor([[2, 4, -3], [1, 3, 5]]); "
    "b = T.tensor([[True, False, True], [False, False, True]]); c = T.tensor([[True, True, False], [False, True, True]]); "
)

UNARY = """exp exp2 expm1 sin cos tan sinh cosh tanh atan asinh sigmoid erf erfc neg positive abs square sign floor ceil trunc round
 frac isnan isfinite isinf isposinf isneginf nan_to_num sinc deg2rad rad2deg logical_not reciprocal relu""".split()
UNIT = "log log1p log2 log10 sqrt rsqrt asin acos atanh erfinv lgamma digamma logit".split()
BINARY = """add sub mul div floor_divide remainder fmod maximum minimum fmax fmin atan2 hypot logaddexp copysign eq ne lt le gt ge
 logical_and logical_or logical_xor""".split()


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    method = "" if name in ("isposinf", "isneginf") else f", x.{name}()"
    same(SETUP + f"R = [T.{name}(x){method}]", rtol=1e-5)


@pytest.mark.parametrize("name", UNIT)
def test_unary_on_unit_interval(name):
    same(SETUP + f"R = [T.{name}(u), u.{name}()]", rtol=1e-5)


@pytest.mark.parametrize(
    "name", ["exp", "sin", "sigmoid", "sqrt", "abs", "neg", "sign", "floor", "reciprocal", "logical_not", "square"]
)
@pytest.mark.parametrize("dtype", ["int64", "uint8", "float64", "bfloat16", "bool"])
def test_unary_dtypes(name, dtype):
    same(SETUP + f"R = T.{name}(x.abs().to(T.{dtype}))", rtol=1e-2 if dtype == "bfloat16" else 1e-5)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    same(SETUP + f"R = [T.{name}(x, y), x.{name}(y), T.{name}(x, y[0]), T.{name}(x, T.tensor(2.))]", rtol=1e-5)


@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "div", "floor_divide", "remainder", "maximum", "eq", "lt", "pow"]
)
@pytest.mark.parametrize("pair", ["i, j.abs()", "i, x", "x, i.abs()", "i.int(), j.abs()", "x.double(), y", "b, j.abs()", "x.half(), i.abs()", "x.bfloat16(), y", "i, T.tensor(2.5)", "x, T.tensor(2.5, dtype=T.float64)", "i.to(T.int8), T.tensor(3)", "T.tensor(2), T.tensor(3.)"])  # fmt: skip
def test_promotion(name, pair):
    if name == "sub" and pair.startswith("b,"):
        pair = "x, i"  # PyTorch subtracts no bools; here a bool counts as an integer
    same(SETUP + f"R = T.{name}({pair})", rtol=1e-2)


OPERATORS = {
    "arithmetic": "[x + y, x - y, x * y, x / y, x // y, x % y, x ** 2, -x, +x, abs(x)]",
    "numbers": "[x + 2, 2 + x, x - 2, 2 - x, x * 2.5, 2.5 * x, x / 2, 2 / x, x // 2, 7 // y, x % 2, 7 % y, x ** 3, 2 ** x, x ** 0.5 if False else u ** 0.5]",
    "integer numbers": "[i + 2, i * 2.5, i / 2, i // 2, i % 3, 7 // j, 7 % j, i ** 2, 2 ** j.abs(), 1 - i]",
    "bool": "[b & c, b | c, b ^ c, ~b, i & 3, i | j, i ^ 1, ~i, i << 1, i >> 1, b + c, b * c]",
    "compare": "[x > y, x >= 2, x < y, x <= 0, x == y, x != 2, i == 2.0, 2 < x, b == c]",
    "matmul": "[x @ y.t(), x.t() @ y, x @ y[0], x[0] @ y[0], T.ones(2, 2, 3) @ T.ones(3, 4), T.ones(5, 1, 2, 3) @ T.ones(4, 3, 2)]",
    "numpy": "[x + np.float32(2), x * np.float64(2), i + np.int64(3), x * np.int32(2)]",
    "conversion": "[bool(T.tensor(1.)), int(T.tensor(3.7)), float(T.tensor(2)), [10, 20][T.tensor(1)], T.tensor([2.5]).item(), x.tolist(), 3 in i, 99 in i]",
    "augmented": "[x.clone().__iadd__(y), x.clone().__imul__(2), x.clone().__itruediv__(4), i.clone().__ifloordiv__(2), i.clone().__imod__(3), b.clone().__iand__(c)]",
    "not implemented": "[x.__eq__('a') is NotImplemented if False else 0]",
}


@pytest.mark.parametrize("code", OPERATORS.values(), ids=OPERATORS.keys())
def test_operators(code):
    same(SETUP + f"R = {code}", rtol=1e-5)


FUNCTIONS = {
    "alpha": "[T.add(x, y, alpha=2), x.sub(y, alpha=3), T.rsub(x, y)]",
    "div rounding": "[T.div(i, j, rounding_mode='trunc'), i.div(j, rounding_mode='floor'), T.div(x, y, rounding_mode='floor')]",
    "pow": "[T.pow(x, 2), T.pow(u, y), T.pow(2, y), i.pow(3), u.pow(-1), x.pow(0), i.pow(2.0), T.float_power(i.abs(), 0.5)]",
    "clamp": "[x.clamp(-1, 1), T.clamp(x, min=0), x.clamp(max=1.5), i.clamp(0, 3), T.clamp(x, min=y), i.clamp(min=0.5), x.clip(0, 1)]",
    "where": "[T.where(b, x, y), T.where(b, x, 0.), T.where(b, 1, x), T.where(b, i, x), x.where(b, y), T.where(b, T.tensor(1.), T.tensor(2))]",
    "where alone": "list(T.where(i > 0))",
    "lerp": "[T.lerp(x, y, 0.3), x.lerp(y, u)]",
    "addcmul": "[T.addcmul(x, y, u, value=2), x.addcdiv(y, u, value=-1)]",
    "masked_fill": "[x.masked_fill(b, -1), i.masked_fill(b, 9), T.masked_fill(x, b[0], 0.), x.masked_fill(b, T.tensor(3.))]",
    "sum": "[x.sum(), T.sum(x, 0), x.sum(1, True), x.sum((0, 1)), i.sum(), b.sum(), x.sum(dtype=T.float64), x.sum(dim=-1, keepdim=True), T.tensor(2.).sum(0)]",
    "mean": "[x.mean(), x.mean(0), T.mean(x, (0, 1), keepdim=True), x.mean(dim=1)]",
    "prod": "[x.prod(), x.prod(1), T.prod(i, 0, keepdim=True), b.prod()]",
    "all any": "[b.all(), b.any(), T.all(b, 0), b.any(1, keepdim=True), (x > 100).any(), i.all(), T.any(x, dim=0)]",
    "arg": "[x.argmax(), x.argmin(1), T.argmax(x, 0, keepdim=True), i.argmin()]",
    "max min": "[x.max(), T.min(x), list(x.max(1)), list(T.min(x, 0, keepdim=True)), T.max(x, y), x.min(y), x.max(dim=1).indices, x.max(1)[0], i.max()]",
    "amax": "[x.amax(), x.amax(0), T.amin(x, (0, 1)), list(T.aminmax(x)), list(x.aminmax(dim=0))]",
    "var": "[x.var(), x.std(), T.var(x, 1), x.std(0, unbiased=False), T.var(x, dim=1, correction=0, keepdim=True), x.var(False), list(T.var_mean(x, 0)), list(T.std_mean(x, 1, False))]",
    "logsumexp": "[x.logsumexp(1), T.logsumexp(x, (0, 1)), x.logsumexp(0, keepdim=True)]",
    "norm": "[x.norm(), x.norm(1), T.norm(x, 2, 1), x.norm(float('inf')), x.norm(p=3, dim=0, keepdim=True), T.linalg.norm(x), T.linalg.vector_norm(x, 3, 1)]",
    "nan": "[T.nansum(T.where(b, float('nan'), x)), T.nanmean(T.where(b, float('nan'), x), 1), T.count_nonzero(i), i.count_nonzero(0)]",
    "softmax": "[x.softmax(1), T.softmax(x, dim=0), T.log_softmax(x, -1), x.log_softmax(1), T.softmax(i, 1, dtype=T.float32), x.softmax(-1, dtype=T.float64)]",
    "linalg": "[T.mm(x, y.t()), T.bmm(T.ones(2, 3, 4), T.ones(2, 4, 5)), T.mv(x, y[0]), T.dot(x[0], y[0]), T.outer(x[0], y[1]), T.addmm(x @ x.t(), x, y.t(), beta=2, alpha=3), T.baddbmm(T.ones(2, 3, 5), T.ones(2, 3, 4), T.ones(2, 4, 5)), T.inner(x, y), T.kron(x, y)]",
    "matmul": "[T.matmul(x, y.t()), x.matmul(y[0]), T.tensordot(x, y, dims=2), T.tensordot(x, y, dims=([1], [1])), T.einsum('ij,kj->ik', x, y), T.einsum('ij->ji', x), T.einsum('ii', x @ y.t()), T.einsum('bij,bjk', T.ones(2, 3, 4), T.ones(2, 4, 5))]",
    "cat": "[T.cat([x, y]), T.cat((x, y), 1), T.cat([x, i], dim=-1), T.stack([x, y], 1), T.stack((x, y), dim=-1), T.hstack([x, y]), T.vstack([x, y]), T.concat([x, y]), T.cat([x, T.zeros(0)])]",
    "repeat": "[x.repeat(2, 3), x.repeat((2, 1, 1)), T.tile(x, (2,)), x.tile(2, 2), T.repeat_interleave(x, 2), x.repeat_interleave(2, dim=1), T.repeat_interleave(x, T.tensor([1, 3]), 0)]",
    "flip roll": "[x.flip(0), T.flip(x, (0, 1)), T.fliplr(x), T.roll(x, 1), x.roll(1, 0), T.roll(x, (1, -1), (0, 1)), T.rot90(x)]",
    "tri": "[x.tril(), T.triu(x, 1), T.trace(x), T.diag(x), T.diag(x[0]), x.diag(1), T.diag_embed(x)]",
    "meshgrid": "list(T.meshgrid(x[0], y[:, 0], indexing='ij'))",
    "atleast": "[T.atleast_1d(T.tensor(1.)), T.atleast_2d(x[0]), T.atleast_3d(x)]",
    "broadcast": "list(T.broadcast_tensors(x, y[0], T.tensor(1.)))",
    "casts": "[x.int(), x.long(), i.float(), i.double(), x.half(), x.bfloat16(), b.int(), x.bool(), i.byte(), i.char(), i.short(), x.to(T.int32), x.type(T.float64), x.to(i), i.type_as(x)]",
    "same to": "[x.to(T.float32) is x, x.to('cpu') is x, x.to(T.float32, copy=True) is x, x.cpu() is x, x.float() is x, x.contiguous() is x]",
    "info": "[x.numel(), x.nelement(), x.element_size(), x.is_floating_point(), i.is_floating_point(), T.is_tensor(x), x.dtype, x.itemsize, T.numel(x), x.is_signed()]",
    "types": "[T.result_type(i, x), T.result_type(i, 2.5), T.promote_types(T.int32, T.float16), T.can_cast(T.float32, T.int32), T.finfo(T.float32).eps, T.iinfo(T.int32).max, T.finfo(T.bfloat16).max]",
    "close": "[T.allclose(x, x + 1e-9), x.allclose(y), T.equal(x, x.clone()), T.equal(x, y), T.isclose(x, y), x.equal(x[0])]",
    "gather": "[x.gather(1, T.tensor([[0, 2], [1, 1]])), T.gather(x, 0, T.tensor([[0, 1, 1]])), x.index_select(1, T.tensor([2, 0])), T.take(x, T.tensor([0, 4])), T.take_along_dim(x, x.argmax(1, keepdim=True), 1)]",
    "scatter": "[x.scatter(1, T.tensor([[0, 2], [1, 0]]), y), x.scatter(0, T.tensor([[1, 0, 1]]), 9.), x.scatter_add(0, T.tensor([[1, 0, 1], [1, 1, 0]]), y), x.scatter_reduce(1, T.tensor([[0, 0, 2], [1, 1, 1]]), y, 'amax')]",
    "index ops": "[x.index_add(0, T.tensor([1, 0]), y), x.index_copy(1, T.tensor([2, 0]), y[:, :2]), x.index_fill(1, T.tensor([1]), 7.), T.index_add(x, 0, T.tensor([0, 0]), y, alpha=2)]",
    "select": "[T.masked_select(x, b), x.masked_select(x > 0), T.nonzero(i), i.nonzero(), list(T.nonzero(i, as_tuple=True)), T.unique(T.tensor([3, 1, 3])), list(T.unique(T.tensor([3, 1, 3]), return_inverse=True, return_counts=True)), T.bincount(T.tensor([0, 2, 2])), T.bincount(T.tensor([0, 2, 2]), minlength=5), T.unique_consecutive(T.tensor([1, 1, 2, 1]))]",
    "masked_scatter": "[x.masked_scatter(b, y)]",
    "search": "[T.searchsorted(T.tensor([1., 3., 5.]), T.tensor([2., 3., 6.])), T.bucketize(x, T.tensor([0., 1., 2.])), T.searchsorted(T.tensor([1., 3.]), T.tensor([3.]), right=True)]",
    "sort": "[list(x.sort()), list(T.sort(x, 0, descending=True)), x.argsort(1), list(x.topk(2)), list(T.topk(x, 1, dim=0, largest=False)), list(x.kthvalue(2)), T.msort(x), T.median(x), list(x.median(1)), list(i.mode()), T.quantile(x, 0.5), T.quantile(x, T.tensor([0.25, 0.5]), dim=1), x.sort().values]",
    "cumulative": "[x.cumsum(0), T.cumsum(i, 1), x.cumprod(1), list(T.cummax(x, 1)), list(x.cummin(0)), T.logcumsumexp(x, 1), T.diff(x), x.diff(dim=0), x.clone().cumsum_(1), b.cumsum(0)]",
    "isin": "[T.isin(i, T.tensor([5, 0])), T.isin(x, y)]",
    "in place": "[x.clone().add_(y), x.clone().mul_(2).sub_(1).div_(3), x.clone().clamp_(0, 1), x.clone().exp_(), x.clone().pow_(2), x.clone().masked_fill_(b, 0), x.clone().relu_(), i.clone().add_(1), i.clone().mul_(j), x.clone().add_(i), x.clone().tril_(), x.clone().lerp_(y, 0.5), x.clone().addcmul_(y, u), x.clone().neg_(), x.clone().fill_(3), x.clone().zero_(), x.clone().copy_(i), x.clone().eq_(y)]",
    "in place scatter": "[x.clone().scatter_(1, T.tensor([[0], [2]]), 5.), x.clone().scatter_add_(0, T.tensor([[1, 0, 1]]), y), x.clone().index_add_(0, T.tensor([0]), y[:1]), x.clone().index_fill_(0, T.tensor([1]), 2.), x.clone().index_copy_(0, T.tensor([1]), y[:1]), x.clone().index_put_((T.tensor([0, 1]), T.tensor([1, 1])), T.tensor([5., 6.])), x.clone().index_put_((T.tensor([0, 0]),), y, accumulate=True)]",
}


@pytest.mark.parametrize("code", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_functions(code):
    same(SETUP + f"R = {code}", rtol=2e-5, atol=1e-5)


INDEXING = {
    "list": "x[[1, 0]]", "tensor": "x[T.tensor([1, 0, 1])]", "two tensors": "x[T.tensor([0, 1]), T.tensor([2, 0])]",
    "broadcast": "z[T.tensor([[0], [1]]), T.tensor([0, 2])]", "apart": "z[T.tensor([0, 1]), :, T.tensor([0, 1])]",
    "slice and tensor": "z[:, 1:, T.tensor([0, 3, 1])]", "int and tensor": "z[1, T.tensor([0, 2])]", "None": "z[None, T.tensor([0])]",
    "mask": "x[x > 0]", "mask row": "z[b]", "mask dim": "z[T.tensor([True, False])]", "mask and slice": "z[:, T.tensor([True, False, True])]",
    "mask and int": "z[T.tensor([True, False]), 1]", "ellipsis": "z[..., T.tensor([0, 1])]", "negative": "x[T.tensor([-1, -2])]",
    "0-d": "x[T.tensor(1)]", "True": "x[True]", "False": "x[False]", "empty list": "x[[]]", "numpy": "x[np.array([0, 1])]", "uint8 free": "x[T.tensor([[True, False, False], [False, True, False]])]",
    "ints": "z[1, 2, 3]", "long tensor 2-d": "x[T.tensor([[0, 1], [1, 1]])]", "bool list": "x[[True, False]]",
}  # fmt: skip


@pytest.mark.parametrize("code", INDEXING.values(), ids=INDEXING.keys())
def test_getitem(code):
    same(SETUP + f"z = T.arange(24.).reshape(2, 3, 4); R = {code}")


@pytest.mark.parametrize("code", INDEXING.values(), ids=INDEXING.keys())
@pytest.mark.parametrize("value", ["-1", "T.tensor(7.5)", "np.float64(2)", "part * 10"])
def test_setitem(code, value):
    same(SETUP + f"z = T.arange(24.).reshape(2, 3, 4); part = {code}; {code} = {value}; R = [x, z]")


@pytest.mark.parametrize("code", INDEXING.values(), ids=INDEXING.keys())
def test_index_gradient(code):
    leaf = "x.requires_grad_(); z = T.arange(24.).reshape(2, 3, 4).requires_grad_(); "
    same(SETUP + leaf + f"(({code}) ** 2).sum().backward(); R = [t.grad for t in (x, z) if t.grad is not None]")


ERRORS = {
    "shapes": "x + T.ones(4)", "matmul": "x @ y", "cat": "T.cat([x, T.ones(2, 4)])", "cat no list": "T.cat(x)", "stack": "T.stack([x, x[0]])",
    "sum dim": "x.sum(5)", "softmax dim": "x.softmax(2)", "max dim": "x.max(3)", "clamp nothing": "x.clamp()", "bool sub": "b - c",
    "mean of int": "i.mean()", "gather dtype": "x.gather(1, x)", "where shapes": "T.where(b, x, T.ones(4))",
    "unknown dtype": "x.to('nothing')", "int negative power": "i ** -1", "dot shapes": "T.dot(x[0], y[0, :2])", "repeat": "x.repeat(2)",
    "bincount of floats": "T.bincount(x)",
}  # fmt: skip


@pytest.mark.parametrize("code", ERRORS.values(), ids=ERRORS.keys())
def test_errors(code):
    same(SETUP + f"R = {code}")


MORE = {
    "activations": "[T.nn.functional.gelu(x), T.threshold(x, 0.1, 2.) if hasattr(T, 'threshold') else 0]",
    "complex": "[T.real(T.tensor([1 + 2j])), T.imag(T.tensor([1 + 2j])), T.conj(T.tensor([1 + 2j])) + 0, T.real(x) is x]",
    "shapes": "[tuple(T.broadcast_shapes((2, 1), (3,))), list(T.hsplit(x, 3)), list(T.vsplit(x, 2)), T.row_stack([x, y])]",
    "typed": "[T.LongTensor([1, 2]), T.FloatTensor([1, 2]), tuple(T.FloatTensor(2, 3).shape), T.BoolTensor([True])]",
    "reshape in place": "[x.clone().unsqueeze_(0), x.clone().t_(), x.clone().transpose_(0, 1), x.clone()[None].clone().squeeze_(0)]",
}


@pytest.mark.parametrize("code", MORE.values(), ids=MORE.keys())
def test_more(code):
    same(SETUP + f"R = {code}")


def test_forms_of_bound_functions():
    import inspect

    import sbpjax

    form = inspect.signature(sbpjax.softmax, eval_str=False)
    assert str(form) == (
        "(input: 'Tensor', dim: 'int | None' = None, dtype=None, *, out: 'Tensor | None' = None) -> 'Tensor'"
    )
    x = sbpjax.ones(2, 3)
    assert sbpjax.equal(sbpjax.softmax(input=x, dim=1), x.softmax(dim=1))
    for bad in (lambda: sbpjax.softmax(x, 1, None, 4), lambda: sbpjax.softmax(x, 1, wrong=2), lambda: sbpjax.softmax(x, 1, dim=1)):  # fmt: skip
        with pytest.raises(TypeError, match="fix:"):
            bad()
    out = sbpjax.zeros(2, 3)
    assert sbpjax.exp(x, out=out) is out and sbpjax.equal(out, x.exp())
