"""Views share storage as in PyTorch: writes are seen both ways, and the tape follows them."""

# ruff: noqa: E501 (a snippet is one line)

import pytest

from tests.tensor.both import same

X = "x = T.arange(24.).reshape(2, 3, 4); "

VIEWS = {
    "view": "x.view(6, 4)",
    "view -1": "x.view(-1)",
    "reshape": "x.reshape(4, 6)",
    "transpose": "x.transpose(0, 2)",
    "permute": "x.permute(2, 0, 1)",
    "t": "x[0].t()",
    "T": "x[1].T",
    "mT": "x.mT",
    "movedim": "x.movedim(0, -1)",
    "narrow": "x.narrow(1, 1, 2)",
    "select": "x.select(2, -1)",
    "squeeze": "x.narrow(0, 1, 1).squeeze(0)",
    "squeeze all": "x.narrow(0, 1, 1).squeeze()",
    "unsqueeze": "x.unsqueeze(1)",
    "unfold": "x.unfold(2, 2, 2)",
    "diagonal": "x.diagonal(0, 1, 2)",
    "diagonal offset": "x.diagonal(1, 1, 2)",
    "int": "x[1]",
    "negative int": "x[-1]",
    "slice": "x[:, 1:]",
    "stepped slice": "x[:, ::2, 1::2]",
    "ellipsis": "x[..., 2]",
    "None": "x[:, None, 1]",
    "mixed": "x[1, :, None, 1:3]",
    "all": "x[:]",
    "flatten": "x.flatten(1)",
    "unflatten": "x.unflatten(2, (2, 2))",
    "view_as": "x.view_as(T.zeros(4, 6))",
    "chain": "x.transpose(0, 1)[1].view(8)[2:6]",
    "reshape of transpose": "x.transpose(1, 2).reshape(2, 2, 2, 3)",
    "reshape that copies": "x.transpose(0, 1).reshape(-1)",
    "contiguous copies": "x.transpose(0, 1).contiguous()",
    "contiguous is itself": "x.contiguous()",
    "split": "x.split(2, 2)[1]",
    "split sizes": "x.split([1, 2], 1)[1]",
    "chunk": "x.chunk(3, 2)[1]",
    "unbind": "x.unbind(1)[2]",
    "tensor_split": "T.tensor_split(x, 3, 2)[1]",
    "detach": "x.detach()",
    "data": "x.data",
    "detach of view": "x[1].detach()",
    "clone": "x.clone()",
    "advanced index copies": "x[[0, 1]]",
    "mask copies": "x[x > 5]",
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
def test_values_and_metadata(view):
    same(
        X
        + f"v = {view}; k = [s for n, s in zip(v.shape, v.stride()) if n > 1]; R = [v, tuple(v.shape), k, v.is_contiguous(), v.storage_offset()]"
    )


def rotated(names, writes, count):
    """Return (name, write) pairs: for each name the next ``count`` writes, so that all meet in less time than every pair takes."""
    writes = list(writes)
    return [(name, writes[(count * i + k) % len(writes)]) for i, name in enumerate(names) for k in range(count)]


@pytest.mark.parametrize(
    "name, write", rotated(VIEWS, ["v.mul_(-2)", "v.zero_()", "v.copy_(T.ones_like(v))", "v[0] = 7", "v.add_(v)"], 2)
)
def test_write_through_view(name, write):
    view = VIEWS[name]
    same(X + f"v = {view}; u = x[1]; w = v.view_as(v); {write}; R = [x, v, u, w]")


@pytest.mark.parametrize("write", ["v.chunk(2)[1].fill_(9)", "v[2].zero_()", "v[:, 0].fill_(-1)"])
def test_write_where_an_element_shows_several_times(write):
    same(f"x = T.tensor([0., float('nan'), 2.]); v = x.expand(4, 3); {write}; R = [x, v]")


@pytest.mark.parametrize("write", ["v[1].mul_(2)", "v[0] = 5.", "v[2:3, 1:].add_(1)", "v[1, 0] = 7."])
def test_a_row_of_an_expanded_tensor_can_be_written_to(write):
    same(
        f"x = T.tensor([1., 2., 3.], requires_grad=True); y = x * 1; v = y.expand(4, 3); {write}\n"
        "y.backward(T.tensor([1., 10., 100.])); R = [y, v, x.grad]"
    )


@pytest.mark.filterwarnings("ignore:Use of .* on expanded tensors is deprecated")
@pytest.mark.parametrize(
    "write",
    [
        "v.masked_fill_(T.tensor([[True, False, True], [False, False, True]]), 7.)",
        "v[v > 1] = 7.",
        "v.index_fill_(0, T.tensor([1]), 7.)",
        "v.fill_diagonal_(7.)",
        "v.triu_()",
    ],
)
def test_one_number_written_to_an_expanded_tensor_shows_in_all_its_rows(write):
    same(f"x = T.tensor([0., 1., 2.]); v = x.expand(2, 3); {write}; R = [x, v]")


BASE_WRITES = [
    "x.add_(100)",
    "x[1, 1:, ::2] = 5",
    "x[0].t()[1].zero_()",
    "x.transpose(0, 1)[2].fill_(3)",
    "x.view(-1)[7:11].mul_(2)",
]


@pytest.mark.parametrize("name, write", rotated(VIEWS, BASE_WRITES, 2))
def test_write_through_base(name, write):
    view = VIEWS[name]
    same(X + f"v = {view}; {write}; R = [x, v]")


GRAD_VIEWS = [k for k in VIEWS if k not in ("data", "detach", "detach of view", "split", "split sizes", "chunk", "unbind", "tensor_split")]  # fmt: skip


GRAD_WRITES = [
    "v.mul_(3)",
    "v.mul_(k)",
    "v.zero_()",
    "v.copy_(k * T.ones_like(v))",
    "b.mul_(2)",
    "b[0].add_(k)",
    "v.pow_(2)",
]


@pytest.mark.parametrize("name, write", rotated(GRAD_VIEWS, GRAD_WRITES, 3))
def test_gradient_through_writes(name, write):
    view = VIEWS[name].replace("x", "b")
    same(
        "a = T.arange(24.).reshape(2, 3, 4).requires_grad_(); k = T.tensor(2., requires_grad=True); b = a * 1; "
        f"v = {view}; {write}; (b.pow(2).sum() + v.sum() * k).backward(); R = [b, v, a.grad, k.grad]",
        atol=1e-4,
    )


CASES = {
    "views of views both ways": X + "a = x[1]; b = a[2]; b.fill_(9); c = x.view(-1); c[0] = -1; R = [x, a, b, c]",
    "version is shared": X + "v = x[0]; n = x._version; v.add_(1); x.add_(1); R = [x._version - n, v._version - n]",
    "is_leaf and base": X + "v = x[0]; R = [v._base is x, v.is_leaf, x._base is None, v[0]._base is x]",
    "detach shares": "a = T.ones(3, requires_grad=True); b = a * 2; d = b.detach(); d.zero_(); R = [b, d.requires_grad]",
    "write to detach, then backward of saved": "a = T.ones(3, requires_grad=True); b = a * 2; c = b * b; b.detach().zero_(); c.sum().backward(); R = 0",
    "data does not count": "a = T.ones(3, requires_grad=True); b = a * 2; c = b + 1; b.data.zero_(); c.sum().backward(); R = [a.grad, b]",
    "set data": "a = T.ones(3, requires_grad=True); a.data = T.arange(3.); (a * a).sum().backward(); R = [a, a.grad, a.is_leaf]",
    "no_grad write to leaf": "a = T.ones(3, requires_grad=True)\nwith T.no_grad(): a.mul_(3)\n(a * a).sum().backward(); R = [a, a.grad, a.is_leaf]",
    "no_grad write to view of leaf": "a = T.ones(3, requires_grad=True)\nwith T.no_grad(): a[1:].mul_(3)\n(a * a).sum().backward(); R = [a, a.grad]",
    "base written, view's grad_fn follows": "a = T.ones(4, requires_grad=True); b = a * 1; v = b[1:3]; b.mul_(3); v.sum().backward(); R = a.grad",
    "view of non-leaf replaced": "a = T.ones(4, requires_grad=True); b = T.zeros(4); v = b[1:3]; v.copy_(a[:2]); (b * 2).sum().backward(); R = [b, a.grad, b.requires_grad, v.requires_grad]",
    "setitem with grad": "a = T.ones(2, requires_grad=True); b = T.zeros(3, 2); b[1] = a * 3; b.pow(2).sum().backward(); R = [b, a.grad]",
    "setitem overwrites grad": "a = T.ones(3, requires_grad=True); b = a * 2; b[1] = 5.; b.sum().backward(); R = a.grad",
    "iteration gives views": X + "[v.zero_() for v in x[1]]; R = x",
    "swap rows": X + "x[[0, 1]] = x[[1, 0]]; R = x",
    "augmented index": X + "x[1, 0] += 10; x[0] *= 2; R = x",
    "view in inference": X + "\nwith T.inference_mode(): v = x[0]\nR = v",
    "size": X + "R = [tuple(x.size()), x.size(1), x.size(-1), x.dim(), x.numel(), x.ndim, len(x)]",
    "expand values": "x = T.arange(3.).reshape(3, 1); R = [x.expand(3, 4), x.expand(2, 3, 4), x.expand(-1, 4), x.expand(3, 4).stride()]",
    "expand sees base": "x = T.arange(3.).reshape(3, 1); v = x.expand(3, 4); x[1] = 9; R = v",
    "broadcast_to": "R = T.broadcast_to(T.arange(3.), (2, 3))",
    "unbind method": X + "R = list(x.unbind(2))",
    "chunk uneven": "R = list(T.arange(7.).chunk(3))",
    "split uneven": "R = list(T.arange(7.).split(3))",
    "ravel flatten": X + "R = [x.ravel(), T.flatten(x), x[0].flatten()]",
    "view dtype": "R = T.tensor([1.5, 2.5]).view(T.int32)",
    "0-d": "x = T.tensor(3.); R = [x.view(1, 1), x.reshape(1), x.unsqueeze(0), x.flatten(), x.t(), x.permute(())]",
    "empty": "x = T.zeros(0, 3); R = [x.view(3, 0), x.t(), x[:, 1], x.reshape(0, 5)]",
}


@pytest.mark.parametrize("code", CASES.values(), ids=CASES.keys())
def test_cases(code):
    same(code)


ERRORS = {
    "view of transpose": X + "R = x.transpose(0, 1).view(-1)",
    "view wrong size": X + "R = x.view(5)",
    "two -1": X + "R = x.view(-1, -1)",
    "reshape wrong size": X + "R = x.reshape(7, -1)",
    "leaf in place": "a = T.ones(2, requires_grad=True); a.add_(1); R = 0",
    "leaf setitem": "a = T.ones(2, requires_grad=True); a[0] = 1; R = 0",
    "leaf iadd": "a = T.ones(2, requires_grad=True); a += 1; R = 0",
    "view of leaf in place": "a = T.ones(2, requires_grad=True); a[0].add_(1); R = 0",
    "expanded in place": "a = T.ones(1, 2).expand(3, 2); a.add_(1); R = 0",
    "expanded set": "a = T.ones(1, 2).expand(3, 2); a[:] = 1; R = 0",
    "expanded out": "a = T.ones(1, 2).expand(3, 2); T.add(T.ones(3, 2), 1, out=a); R = 0",
    "expand to nothing": "T.ones(()).expand()",
    "split output in place": "a = T.ones(4, requires_grad=True) * 1; a.split(2)[0].add_(1); R = 0",
    "unbind output in place": "a = T.ones(4, 2, requires_grad=True) * 1; a.unbind(0)[0].mul_(2); R = 0",
    "no_grad view in place": "a = T.ones(2, requires_grad=True) * 1\nwith T.no_grad(): v = a[0:1]\nv.mul_(2); R = 0",
    "saved changed": "a = T.ones(2, requires_grad=True); b = a * 2; c = b * b; b.add_(1); c.sum().backward(); R = 0",
    "saved changed through view": "a = T.ones(2, requires_grad=True); b = a * 2; c = b * b; b[0].add_(1); c.sum().backward(); R = 0",
    "saved view changed through base": "a = T.ones(2, 2, requires_grad=True); b = a * 2; v = b[0]; c = v * v; b.add_(1); c.sum().backward(); R = 0",
    "saved output changed": "a = T.ones(2, requires_grad=True); b = a.exp(); b.add_(1); b.sum().backward(); R = 0",
    "sigmoid output changed": "a = T.ones(2, requires_grad=True); b = a.sigmoid(); b.mul_(2); b.sum().backward(); R = 0",
    "in-place shape grows": "a = T.ones(2); a.add_(T.ones(3, 2)); R = 0",
    "in-place float into int": "a = T.tensor([1, 2]); a.add_(1.5); R = 0",
    "in-place true division of int": "a = T.tensor([1, 2]); a.div_(2); R = 0",
    "index too large": X + "R = x[2]",
    "index too small": X + "R = x[-3]",
    "too many indices": X + "R = x[0, 0, 0, 0]",
    "index of 0-d": "R = T.tensor(1.)[0]",
    "negative step": X + "R = x[::-1]",
    "float index tensor": X + "R = x[T.tensor([0.5])]",
    "mask shape": X + "R = x[T.ones(3, dtype=T.bool)]",
    "index tensor out of range": X + "R = x[T.tensor([0, 5])]",
    "setitem shape": X + "x[0] = T.ones(5); R = 0",
    "narrow out of range": X + "R = x.narrow(0, 1, 2)",
    "permute repeats": X + "R = x.permute(0, 0, 1)",
    "transpose out of range": X + "R = x.transpose(0, 5)",
    "squeeze out of range": X + "R = x.squeeze(4)",
    "t of 3-d": X + "R = x.t()",
    "expand shrinks": X + "R = x.expand(2, 3)",
    "expand wrong": X + "R = x.expand(2, 3, 5)",
    "split sizes wrong": X + "R = x.split([1, 1], 2)",
    "unfold too large": X + "R = x.unfold(0, 3, 1)",
    "iterate 0-d": "R = list(T.tensor(1.))",
    "len 0-d": "R = len(T.tensor(1.))",
    "detach_ of view": X + "x[0].detach_(); R = 0",
    "requires_grad on int": "T.tensor([1]).requires_grad_(); R = 0",
    "requires_grad off on non-leaf": "(T.ones(2, requires_grad=True) * 2).requires_grad_(False); R = 0",
    "bool of many": "R = bool(T.ones(2))",
    "item of many": "R = T.ones(2).item()",
    "float of int index": "R = [1, 2][T.tensor(0.5)]",
}


@pytest.mark.parametrize("code", ERRORS.values(), ids=ERRORS.keys())
def test_errors(code):
    same(code)


def test_failed_write_leaves_state():
    code = "x = T.arange(3.)\nn = x._version\ntry: x.add_(T.ones(2, 3))\nexcept RuntimeError: pass\nR = [x, x._version - n, x.is_leaf]"
    same(code)


def test_tensor_with_views_changes_its_shape_in_place():
    same(
        "x = T.arange(6.).reshape(2, 3).clone()\nv, d = x[0], x.detach()\nw = v[1:]\n"
        "x.transpose_(0, 1)\nv.mul_(10)\nx[0, 1] = 99.\nx.unsqueeze_(0)\ny = x[0, 1]\ny += 0.5\nw.fill_(7)\n"
        "x.squeeze_()\nx.t_()\nx.t_()\nd.add_(1)\nx.requires_grad_()\n(x * x).sum().backward()\n"
        "R = [x, v, d, w, y, x.grad, x.is_leaf, x.stride()]"
    )


# Safe differences: arrays cannot change under a recorded op, so what PyTorch would silently or loudly get wrong is right here.
def test_saved_by_value_through_data():
    import sbpjax

    a = sbpjax.ones(3, requires_grad=True)
    b = a * 2
    c = b * b
    b.data.zero_()
    c.sum().backward()
    assert a.grad.tolist() == [8.0, 8.0, 8.0]


def test_overlapping_windows_are_not_written():
    import sbpjax

    windows = sbpjax.arange(5.0).unfold(0, 3, 1)
    with pytest.raises(sbpjax.errors.InplaceError, match="single memory location"):
        windows.add_(1)
