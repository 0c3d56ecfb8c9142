"""Tensors of worker processes and their functions do what PyTorch's do."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax.data.loading.host_functions import FUNCTIONS, METHODS, Generator
from sbpjax.data.loading.host_tensors import DTYPES, HostTensor

F = torch.nn.functional
X = np.random.RandomState(0).randn(3, 4, 2).astype(np.float32)
Y = np.random.RandomState(1).randn(3, 4, 2).astype(np.float32)
N = np.random.RandomState(2).randint(-4, 9, (3, 4))
B = X > 0


def same(got, expected):
    if isinstance(expected, (tuple, list)):
        assert len(got) == len(expected)
        for g, e in zip(got, expected, strict=True):
            same(g, e)
        return
    if isinstance(expected, torch.Tensor):
        assert isinstance(got, HostTensor), type(got)
        assert np.asarray(got).dtype == expected.numpy().dtype
        np.testing.assert_allclose(np.asarray(got), expected.numpy(), rtol=2e-6, atol=1e-6)
        return
    assert got == expected


def both(call, *arrays):
    """Call a function of (namespace, *tensors) on host tensors and on PyTorch's."""

    class Host:
        def __getattr__(self, name):
            return DTYPES[name] if name in DTYPES else FUNCTIONS[name]

        functional = type("functional", (), {k[14:]: staticmethod(v) for k, v in FUNCTIONS.items() if k.count(".")})

    class Torch:
        functional = F

        def __getattr__(self, name):
            return getattr(torch, name)

    same(call(Host(), *[a.copy().view(HostTensor) for a in arrays]), call(Torch(), *[torch.tensor(a) for a in arrays]))


UNARY = "abs exp sqrt square sin cos tan tanh sinh cosh floor ceil round trunc sign isnan isinf isfinite log log1p"
UNARY += " log2 log10 neg reciprocal sigmoid relu sum mean prod std var max min any all argmax argmin flatten unbind"
UNARY += " logical_not asin acos atan nonzero sort unique clone t numel"


@pytest.mark.parametrize("name", UNARY.split())
def test_functions_of_one_tensor(name):
    x = (
        np.abs(X[..., 0]) % 1
        if name in ("log", "log1p", "log2", "log10", "sqrt", "asin", "acos", "reciprocal")
        else X[..., 0]
    )
    x = B[..., 0] if name in ("any", "all") else x
    both(lambda t, a: getattr(t, name)(a), x)
    if name in METHODS:
        both(lambda t, a: getattr(a, name)(), x)


@pytest.mark.parametrize("name", "add sub mul div pow atan2 fmod remainder maximum minimum eq ne lt le gt ge".split())
def test_functions_of_two_tensors(name):
    both(lambda t, a, b: getattr(t, name)(a, b), np.abs(X) + 1, Y)


@pytest.mark.parametrize("name", "sum mean std var any all max min argmax argmin".split())
@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions_along_a_dim(name, keepdim):
    x = B if name in ("any", "all") else X
    both(lambda t, a: tuple(v) if isinstance(v := getattr(a, name)(dim=1, keepdim=keepdim), tuple) else v, x)
    if name in ("sum", "mean"):
        both(lambda t, a: getattr(a, name)(dim=(0, 2), keepdim=keepdim), x)


CALLS = {
    "integers become float32": lambda t, n: (n / n.abs().clamp(min=1), n * 0.5, n + 1, n // 2, n.float().mean()),
    "sizes": lambda t, n: (tuple(n.size()), n.size(0), n.size(-1), n.numel(), n.dim(), tuple(n.shape), n.ndim),
    "shapes": lambda t, n: (n.view(2, 6), n.view(-1), n.reshape(4, 3), n.t(), n.transpose(0, 1), n.permute(1, 0)),
    "dims": lambda t, n: (n.unsqueeze(0), n[None].squeeze(0), n.squeeze(0), n.flatten(), n[:, :1].expand(3, 5)),
    "repeats": lambda t, n: (n.repeat(2, 1), n[:, :1].expand(-1, 4), n.expand_as(n), n.flip(0), n.flip([0, 1])),
    "moves": lambda t, n: (
        t.roll(n, 1, 0),
        t.roll(n, (1, 2), (0, 1)),
        n.chunk(2, 1),
        n.split(2, 1),
        t.split(n, [1, 2]),
    ),
    "bounds": lambda t, n: (n.clamp(0, 5), n.clip(min=0), n.float().clamp(max=1.5), t.clamp(n, -1, 1)),
    "casts": lambda t, n: (n.float(), n.double(), n.int(), n.bool(), n.long(), n.half(), n.byte()),
    "order": lambda t, n: (tuple(t.sort(n.float(), 1, True)), t.argsort(n.float(), dim=0), n.cumsum(1), t.unique(n)),
    "places": lambda t, n: (n[n > 2], t.where(n > 0, n, t.zeros_like(n)), t.where(n > 3), (n > 3).nonzero()),
    "norms": lambda t, n: (n.float().norm(), n.float().norm(dim=1), t.norm(n.float(), 1, 0, True)),
    "writes": lambda t, n: (n.clone().fill_(3), n.clone().zero_(), n.clone().copy_(n + 1)),
    "one hot": lambda t, n: (t.functional.one_hot(n.clamp(0, 4), 5), t.functional.one_hot(n.clamp(0, 3))),
    "pad": lambda t, n: (
        t.functional.pad(n.float(), (1, 2)),
        t.functional.pad(n.float(), (1, 2, 0, 1), value=3.0),
        t.functional.pad(n.float()[None], (1, 1), "reflect"),
        t.functional.pad(n.float()[None], (1, 1), "replicate"),
    ),
    "soft": lambda t, n: (
        t.functional.softmax(n.float(), dim=1),
        t.functional.normalize(n.float()),
        t.softmax(n.float(), 0),
    ),
    "products": lambda t, n: (t.matmul(n, n.t()), n @ n.t(), t.mm(n.float(), n.float().t())),
    "together": lambda t, n: (t.stack([n, n], 1), t.cat([n, n], -1), t.concat([n, n])),
    "keywords": lambda t, n: (
        *(t.zeros(size=(2, 3)), t.ones(size=(2,)), t.arange(end=3), t.arange(1, 4, dtype=t.float32)),
        *(
            n.flip(dims=[0]),
            t.flip(n, dims=(0, 1)),
            n.permute(dims=(1, 0)),
            n.reshape(shape=(2, 6)),
            t.cat([n, n], axis=1),
        ),
        *(n.transpose(dim0=0, dim1=1), n.add(n, alpha=2), t.sub(n, 1, alpha=3), n.float().to("cpu", t.float64)),
        *(
            n.to(n.double()),
            n.max(1).values,
            n.min(dim=0).indices,
            n.float().var(0, False),
            n.float().std(unbiased=False),
        ),
        *(t.functional.softmax(n.float(), dim=1, dtype=t.float64), n.sum(dtype=t.float32), n.float().mean(0, True)),
        t.rand(size=(2, 3)) * 0,
    ),
    "dtypes of mixed operands": lambda t, n: (
        *(n.float() * t.tensor(2.0, dtype=t.float64), t.tensor(2.0, dtype=t.float64) * n.float(), n.half() * n),
        *(t.cat([n.float(), n]), t.stack([n, n.double()]), n * t.tensor(2.5), n.float() + n, n.byte() + n.int()),
    ),
    "in place": lambda t, n: (
        *(
            n.float().add_(1.5),
            n.float().mul_(n),
            n.clone().clamp_(0, 3),
            n.float().div_(2),
            n.clone().sub_(1, alpha=2),
        ),
        n.clone().masked_fill_(n > 2, 0),
    ),
    "picking": lambda t, n: (
        *(
            n.masked_fill(n > 2, -1),
            t.gather(n, 1, n.clamp(0, 2)),
            n.gather(0, n[:2].clamp(0, 2)),
            n.repeat_interleave(2),
        ),
        *(
            t.repeat_interleave(n, 2, dim=1),
            n.tril(),
            n.triu(1),
            t.einsum("ij,kj->ik", n, n),
            n.new_zeros(2),
            n.new_ones((2, 3)),
        ),
        *(
            n.float().topk(2).values,
            *t.meshgrid(n[0], n[:, 0], indexing="ij"),
            n.new_full((2,), 7),
            n.new_tensor([1, 2]),
        ),
        *(t.functional.pad(n.float(), (-1, 2)), t.functional.pad(n.float(), (-1, -1, 0, 1))),
    ),
    "made": lambda t, n: (
        t.full((2, 3), 1.5),
        t.eye(3),
        t.linspace(0, 1, 5),
        t.arange(3),
        t.arange(0, 1, 0.25),
        t.ones(2),
    ),
    "like": lambda t, n: (t.ones_like(n), t.full_like(n, 2), t.tensor([1, 2]), t.tensor(2.5), t.as_tensor([1.0])),
}


@pytest.mark.parametrize("name", list(CALLS))
def test_calls(name):
    both(CALLS[name], N)


def test_random_numbers_have_their_ranges_and_repeat_by_seed():
    t = FUNCTIONS
    assert t["rand"](1000).min() >= 0 and t["rand"](1000).max() < 1 and t["rand"](2, 3).dtype == np.float32
    assert abs(t["randn"](4000).mean()) < 0.1 and t["randn"]((2, 3)).shape == (2, 3)
    assert sorted(t["randperm"](5).tolist()) == [0, 1, 2, 3, 4]
    drawn = t["randint"](2, 5, (100,))
    assert drawn.dtype == np.int64 and set(drawn.tolist()) == {2, 3, 4}
    assert t["bernoulli"](t["ones"](3)).tolist() == [1, 1, 1]
    a, b = (t["rand"](3, generator=Generator().manual_seed(4)).tolist() for _ in range(2))
    assert a == b
    t["manual_seed"](1)
    c = t["normal"](0.0, 1.0, (2,)).tolist()
    t["manual_seed"](1)
    assert t["normal"](0.0, 1.0, (2,)).tolist() == c


def test_what_is_unknown_is_refused_and_not_swallowed():
    for call in (
        lambda t: t["zeros"](2, shape=3),
        lambda t: t["rand"](2, bogus=1),
        lambda t: t["softmax"](t["ones"](2), bogus=1),
        lambda t: t["ones"](2).sum(bogus=1),
    ):
        with pytest.raises(TypeError):
            call(FUNCTIONS)
    assert (
        HostTensor([1, 2]).dtype == np.float32 and HostTensor([1, 2]).shape == (2,) and HostTensor(2, 3).shape == (2, 3)
    )


def test_the_page_names_them_all():
    text = (Path(__file__).parents[3] / "docs" / "reference" / "data_workers.md").read_text()
    named = set(re.findall(r"`([\w.]+)`", text))
    assert not {*FUNCTIONS, *METHODS} - named


def test_every_name_is_one_of_the_tensor_library():
    missing = []
    for path in FUNCTIONS:
        owner = flow
        for part in path.split("."):
            owner = getattr(owner, part, None)
        if owner is None:
            missing.append(path)
    assert not missing
    assert not [name for name in METHODS if not hasattr(flow.Tensor, name)]
