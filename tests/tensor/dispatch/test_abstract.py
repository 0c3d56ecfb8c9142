"""Tensors without data: made, moved, computed with, trained and lowered, never read."""

import copy

import jax
import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn, optim, sbp
from sbpjax.errors import AbstractError, OpError
from sbpjax.nn import functional as F
from sbpjax.sbp.abstract import Abstract

GRID = flow.placement("cpu", [[0, 1, 2, 3], [4, 5, 6, 7]])
WHERE = {"placement": GRID, "sbp": [sbp.split(0), sbp.broadcast]}

MAKERS = {
    "zeros": lambda **w: flow.zeros(8, 4, **w),
    "ones": lambda **w: flow.ones((8, 4), **w),
    "empty": lambda **w: flow.empty(8, 4, **w),
    "full": lambda **w: flow.full((8, 4), 2.0, **w),
    "rand": lambda **w: flow.rand(8, 4, **w),
    "randn": lambda **w: flow.randn(8, 4, **w),
    "eye": lambda **w: flow.eye(8, 4, **w),
    "tensor": lambda **w: flow.tensor(np.zeros((8, 4), np.float32), **w),
    "normal": lambda **w: flow.normal(0.0, 1.0, (8, 4), **w),
}


@pytest.mark.parametrize("maker", MAKERS)
class TestMaking:
    def check(self, x):
        assert x.is_meta
        assert isinstance(x._array, Abstract)
        assert (x.shape, x.dtype, x.ndim, x.numel()) == ((8, 4), flow.float32, 2, 32)

    def test_under_abstract(self, maker):
        with flow.abstract():
            x = MAKERS[maker]()
        self.check(x)
        assert x.is_local and not x.is_lazy and x.device == flow.device("meta")
        assert not MAKERS[maker]().is_meta

    def test_on_meta(self, maker):
        self.check(MAKERS[maker](device="meta"))

    def test_global(self, maker):
        with flow.abstract():
            x = MAKERS[maker](**WHERE)
        self.check(x)
        assert x.is_global and x.placement == GRID and x.sbp == (sbp.split(0), sbp.broadcast)
        assert x._array.sharding == x.layout.sharding


def test_ranges_have_their_length_and_dtype():
    with flow.abstract():
        assert flow.arange(2, 11, 3).shape == (3,)
        assert flow.arange(5).dtype == flow.int64
        assert flow.linspace(0, 1, 7).shape == (7,)
        assert flow.randint(0, 9, (2, 3)).dtype == flow.int64
        assert flow.randperm(6).shape == (6,)


def test_blocks_nest():
    with flow.abstract():
        with flow.abstract():
            pass
        assert flow.zeros(2).is_meta
    assert not flow.zeros(2).is_meta


def test_no_memory_is_taken():
    with flow.abstract():
        x = flow.zeros(1 << 20, 1 << 20)  # 4 TiB
    y = (x @ x).relu()
    assert y.shape == (1 << 20, 1 << 20) and y.is_meta


@pytest.mark.parametrize("like", [flow.zeros_like, flow.ones_like, flow.empty_like, flow.rand_like, flow.randn_like])
@pytest.mark.parametrize("where", [{}, WHERE])
def test_like_an_abstract_tensor(like, where):
    with flow.abstract():
        x = flow.zeros(8, 4, **where)
    y = like(x)
    assert y.is_meta and y.shape == x.shape and y.layout is x.layout
    z = x.new_zeros(2, 3)
    assert z.is_meta and z.shape == (2, 3)
    assert x.new_full((2,), 1.0).is_meta


class TestComputing:
    @pytest.mark.parametrize(
        "fn",
        [
            lambda x: x + 1,
            lambda x: x @ x.t(),
            lambda x: x.softmax(-1),
            lambda x: x.reshape(4, 8).transpose(0, 1),
            lambda x: x[2:5, 1],
            lambda x: x.sum(0, keepdim=True),
            lambda x: flow.cat([x, x * 2], 1),
            lambda x: x.max(1)[0],
            lambda x: x.to(flow.bfloat16).float(),
            lambda x: F.layer_norm(x, (4,)),
            lambda x: x.topk(2)[1],
        ],
    )
    @pytest.mark.parametrize("where", [{}, WHERE])
    def test_shapes_dtypes_and_layouts_are_those_of_the_run(self, fn, where):
        with flow.abstract():
            x = flow.zeros(8, 4, **where)
        real = flow.zeros(8, 4, **where)
        wanted, found = fn(real), fn(x)
        assert found.is_meta
        assert (found.shape, found.dtype, found.layout) == (wanted.shape, wanted.dtype, wanted.layout)

    @pytest.mark.parametrize("where", [{}, WHERE])
    def test_backward(self, where):
        with flow.abstract():
            x = flow.zeros(8, 4, requires_grad=True, **where)
        real = flow.zeros(8, 4, requires_grad=True, **where)
        for t in (x, real):
            ((t * 2 + 1).relu() ** 2).sum().backward()
        assert x.grad.is_meta
        assert (x.grad.shape, x.grad.layout) == (real.grad.shape, real.grad.layout)

    def test_in_place_and_views(self):
        x = flow.zeros(8, 4, device="meta")
        row = x[1]
        row.mul_(2).add_(1)
        x.fill_(3)
        x[0] = 5.0
        x.copy_(flow.ones(8, 4))
        assert x.is_meta and row.shape == (4,) and row.is_meta

    def test_a_wrong_shape_is_still_an_error(self):
        with pytest.raises(OpError):
            flow.zeros(8, 4, device="meta") + flow.zeros(3, device="meta")

    def test_moving(self):
        x = flow.ones(8, 4).to("meta")
        assert x.is_meta and x.to("meta") is x
        y = x.to_global(GRID, [sbp.split(0), sbp.split(1)])
        assert y.is_meta and y.sbp == (sbp.split(0), sbp.split(1))
        z = y.to_global(flow.placement("cpu", [0, 1]), sbp.split(1))
        assert z.is_meta and z.placement == flow.placement("cpu", [0, 1])
        assert z.to_local().is_meta and z.to_local().is_local
        assert flow.ones(8, 4, **WHERE).to("meta").layout is flow.ones(8, 4, **WHERE).layout

    def test_copies(self):
        x = flow.zeros(8, 4, device="meta", requires_grad=True)
        for y in (copy.deepcopy(x), x.detach(), x.clone(), flow.tensor(x)):
            assert y.is_meta and y.shape == x.shape


NEED_DATA = {
    "item": lambda x: x.sum().item(),
    "float": lambda x: float(x.sum()),
    "bool": lambda x: bool(x.sum()),
    "numpy": lambda x: x.numpy(),
    "tolist": lambda x: x.tolist(),
    "asarray": lambda x: np.asarray(x),
    "mask": lambda x: x[x > 0],
    "nonzero": lambda x: x.nonzero(),
    "unique": lambda x: x.unique(),
    "local_shards": lambda x: x.to_global(GRID, [sbp.broadcast, sbp.broadcast]).local_shards(),
    "cpu": lambda x: x.to("cpu"),
    "into real": lambda x: flow.zeros(8, 4).copy_(x),
    "pickle": lambda x: x.__reduce_ex__(2),
}


@pytest.mark.parametrize("reader", NEED_DATA)
def test_who_needs_data_gets_an_error(reader):
    x = flow.zeros(8, 4, device="meta")
    with pytest.raises(AbstractError) as error:
        NEED_DATA[reader](x)
    lines = str(error.value).splitlines()
    assert __file__ in lines[0]
    assert [line.split(":")[0].strip() for line in lines[1:]] == ["seen", "rule", "fix"]
    assert isinstance(error.value, NotImplementedError)


@pytest.mark.parametrize(
    "where, text",
    [
        ({}, "tensor(..., size=(8, 4), device='meta')"),
        (
            WHERE,
            'tensor(..., size=(8, 4), placement=sbpjax.placement(type="cpu", ranks=[[0, 1, 2, 3], [4, 5, 6, 7]]), '
            "sbp=(sbpjax.sbp.split(dim=0), sbpjax.sbp.broadcast), dtype=sbpjax.float32)",
        ),
    ],
)
def test_repr(where, text):
    with flow.abstract():
        assert repr(flow.zeros(8, 4, **where)) == text


def model():
    return nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 16))


class TestModules:
    def test_initialisers_do_nothing(self):
        state = flow.get_rng_state()
        with flow.abstract():
            made = [model(), nn.Embedding(10, 4, padding_idx=0), nn.Conv2d(3, 8, 3), nn.BatchNorm1d(4)]
            for p in made[0].parameters():
                if p.ndim == 2:
                    for init in (nn.init.orthogonal_, nn.init.xavier_normal_, nn.init.trunc_normal_, nn.init.eye_):
                        assert init(p) is p
        assert flow.get_rng_state().tolist() == state.tolist()
        for m in made:
            assert all(p.is_meta for p in [*m.parameters(), *m.buffers()])

    def test_device_argument(self):
        layer = nn.Linear(4, 8, device="meta")
        assert layer.weight.is_meta and layer.bias.is_meta

    def test_to_global(self):
        with flow.abstract():
            m = model()
        m.to_global(GRID, sbp=[sbp.broadcast, sbp.split(0)])
        assert all(p.is_meta and p.sbp == (sbp.broadcast, sbp.split(0)) for p in m.parameters())
        m.bfloat16()
        assert all(p.is_meta and p.dtype == flow.bfloat16 for p in m.parameters())

    def test_state_dict(self):
        real = model()
        with flow.abstract():
            m = model()
        assert {k: v.shape for k, v in m.state_dict().items()} == {k: v.shape for k, v in real.state_dict().items()}
        m.load_state_dict(real.state_dict(), assign=True)
        assert np.array_equal(m[0].weight.numpy(), real[0].weight.numpy())

    def test_memory_can_be_given(self):
        with flow.abstract():
            m = model()
        m.to_empty(device="cpu")
        m[0].reset_parameters()
        assert not any(p.is_meta for p in m.parameters())
        assert m[0].weight.std().item() > 0
        with flow.abstract():
            g = model().to_global(GRID, [sbp.broadcast, sbp.split(0)])
        g.to_empty()
        assert all(not p.is_meta and p.sbp == (sbp.broadcast, sbp.split(0)) for p in g.parameters())


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW])
@pytest.mark.parametrize("laid_out", [False, True])
def test_optimizer_state_is_abstract(kind, laid_out):
    with flow.abstract():
        m = model()
    if laid_out:
        m.to_global(GRID, [sbp.broadcast, sbp.split(0)])
    optimizer = kind(m.parameters(), lr=0.1)
    optimizer.prepare()
    assert all(t.is_meta for t in optimizer.state_tensors())
    with flow.abstract():
        x = flow.zeros(8, 16) if not laid_out else flow.zeros(8, 16, **WHERE)
    m(x).sum().backward()
    optimizer.step()
    assert all(p.is_meta for p in m.parameters())


class TestPrograms:
    def setting(self, abstract: bool):
        flow.manual_seed(0)
        m = model()
        if abstract:
            m.to("meta")
        m.to_global(GRID, [sbp.broadcast, sbp.broadcast])
        optimizer = optim.AdamW(m.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            loss = F.dropout(m(x), 0.1).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        x = flow.ones(8, 16, **WHERE)
        return m, flow.compile(step, state=(m, optimizer)), x.to("meta") if abstract else x

    def test_the_program_is_that_of_real_tensors(self):
        texts = []
        for abstract in (False, True):
            _, step, x = self.setting(abstract)
            texts.append(step.lower(x).as_text())
        assert texts[0] == texts[1]

    def test_lowered_and_compiled_without_data(self):
        m, step, x = self.setting(True)
        memory = step.lower(x).compile().memory_analysis()
        weights = sum(p.numel() * 4 for p in m.parameters())
        assert memory.argument_size_in_bytes == pytest.approx(3 * weights + 4 * 16 * 4, rel=0.02)
        assert all(p.is_meta for p in m.parameters())

    def test_a_run_is_an_error(self):
        _, step, x = self.setting(True)
        with pytest.raises(AbstractError, match="and no elements") as error:
            step(x)
        assert "rule:" in str(error.value)

    def test_inside_a_program_creation_is_real(self):
        step = flow.compile(lambda x: x + flow.ones(4))
        with flow.abstract():
            out = step.lower(flow.zeros(4))
        assert "f32" in out.as_text() and isinstance(out, jax.stages.Lowered)


@pytest.mark.aot
class TestAbsentPlacement:
    def where(self):
        return flow.placement.topology("v5p:2x2x1", [2, 2])

    @pytest.mark.parametrize("maker", MAKERS)
    def test_what_is_made_there_is_abstract(self, maker):
        x = MAKERS[maker](placement=self.where(), sbp=[sbp.split(0), sbp.broadcast])
        assert x.is_meta and x.placement == self.where() and x.layout.local_shape == (4, 4)
        assert 'sbpjax.placement.topology("v5p:2x2x1", [2, 2])' in repr(x)

    def test_data_cannot_go_there(self):
        for x in (flow.ones(8, 4), flow.ones(8, 4, **WHERE)):
            with pytest.raises(AbstractError, match="is not there") as error:
                x.to_global(self.where(), [sbp.split(0), sbp.broadcast])
            assert 'x.to("meta")' in str(error.value)
            assert x.to("meta").to_global(self.where(), [sbp.split(0), sbp.broadcast]).is_meta

    def test_a_graph_that_makes_a_constant_there(self):
        where, everywhere = self.where(), [sbp.broadcast, sbp.broadcast]

        class Scaled(flow.nn.Graph):
            def build(self, x):
                return x * flow.tensor([1.0, 2.0, 3.0, 4.0], placement=where, sbp=everywhere)

        x = flow.zeros(8, 4, placement=where, sbp=[sbp.split(0), sbp.broadcast])
        assert Scaled().memory(x, compiled=False).total > 0

    def test_ops_and_programs_there(self):
        x = flow.zeros(8, 4, placement=self.where(), sbp=[sbp.split(0), sbp.broadcast])
        y = (x @ x.t()).sum(0)
        assert y.is_meta and y.shape == (8,)
        everywhere = [sbp.broadcast, sbp.broadcast]
        step = flow.compile(lambda x: (x * 2).sum().to_global(self.where(), everywhere))
        assert "all-reduce" in step.lower(x).compile().as_text()
        with pytest.raises(AbstractError, match="is not there"):
            step(x)
