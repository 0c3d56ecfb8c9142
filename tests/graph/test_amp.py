"""`enable_amp`: casts in the program, master weights, loss scales, and the same curve in every layout."""

import numpy as np
import pytest
from jax.extend.core import Literal

import sbpjax as flow
from sbpjax import nn, optim
from sbpjax.nn import functional as F
from sbpjax.optim.rules import MASTER

DIM, BATCH, CLASSES, STEPS = 32, 16, 8, 24

# Relative deviations of the loss in any of 24 steps of AdamW, while it falls to 1/18. Bfloat16 rounds to 2^-9.
BF16_CURVE = 2.0**-7  # from the float32 curve; measured 1.4e-3, for float16 4e-4
LAYOUT_CURVE = 2.0**-7  # from one device: the same products summed in another order; measured 3e-3
EAGER_CURVE = 2.0**-7  # from the graph: eager gradients of weights are rounded to bfloat16 before they are cast back


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.q, self.k, self.v, self.out = (nn.Linear(DIM, DIM) for _ in range(4))
        self.up, self.down = nn.Linear(DIM, 2 * DIM), nn.Linear(2 * DIM, DIM)

    def forward(self, x):
        h = self.norm(x)
        heads = [p(h).reshape(*x.shape[:2], 4, DIM // 4).transpose(1, 2) for p in (self.q, self.k, self.v)]
        h = F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).reshape(*x.shape)
        x = x + self.out(h)
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Gpt(nn.Module):
    """A GPT of two equal layers, with the embedding tied to the head."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(CLASSES, DIM)
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.norm = nn.LayerNorm(DIM)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.embedding.weight)


class Train(nn.Graph):
    def __init__(self, model, optimizer, amp=None, accumulation=1, scaler=None):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)
        self.config.set_gradient_accumulation_steps(accumulation)
        if amp is not None:
            self.config.enable_amp(True, dtype=amp)
        self.set_grad_scaler(scaler)

    def build(self, x, y):
        logits = self.model(x)
        loss = F.cross_entropy(logits.reshape(-1, CLASSES), y.reshape(-1))
        loss.backward()
        return loss


def _model(kind=Gpt):
    flow.manual_seed(3)
    return kind()


def _data():
    rng = np.random.default_rng(0)
    start = rng.integers(0, CLASSES, (BATCH, 1))
    tokens = (start + 3 * np.arange(9)) % CLASSES  # each token follows from the one before
    return flow.tensor(tokens[:, :-1].copy()), flow.tensor(tokens[:, 1:].copy())


S, B = flow.sbp.split, flow.sbp.broadcast
LAYOUTS = {  # layout → ranks, sbp of the data, of weights split by rows, of weights split by columns
    "dp": ([0, 1, 2, 3], [S(0)], [B], [B]),
    "tp": ([0, 1, 2, 3], [B], [S(0)], [S(1)]),
    "2d": ([[0, 1], [2, 3]], [S(0), B], [B, S(0)], [B, S(1)]),
}


def _lay_out(model, x, y, layout):
    ranks, data, rows, columns = LAYOUTS[layout]
    p = flow.placement("cpu", ranks)
    everywhere = [B] * len(data)
    model.to_global(p, everywhere)
    for block in model.blocks:
        for linear in (block.q, block.k, block.v, block.up):
            linear.to_global(p, rows)
        for linear in (block.out, block.down):
            linear.weight.data = linear.weight.data.to_global(p, columns)
    return x.to_global(p, data), y.to_global(p, data)


def _curve(amp=flow.bfloat16, layout=None, accumulation=1, steps=STEPS, **options):
    model, (x, y) = _model(), _data()
    if layout is not None:
        x, y = _lay_out(model, x, y, layout)
    graph = Train(model, optim.AdamW(model.parameters(), lr=3e-3), amp, accumulation, **options)
    losses = [float(graph(x, y).mean().numpy()) for _ in range(steps)]
    return np.array(losses), graph


@pytest.fixture(scope="module")
def exact():
    return _curve(amp=None)[0]


@pytest.fixture(scope="module")
def bf16():
    return _curve()


# -- curves ------------------------------------------------------------------------------------------------------------


def test_the_bfloat16_curve_follows_the_float32_curve(exact, bf16):
    curve, _ = bf16
    assert exact[-1] < 0.5 * exact[0]
    assert np.any(curve != exact)
    np.testing.assert_allclose(curve, exact, rtol=BF16_CURVE)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_follow_the_curve_of_one_device(bf16, layout):
    curve, _ = _curve(layout=layout)
    np.testing.assert_allclose(curve, bf16[0], rtol=LAYOUT_CURVE)


@pytest.mark.parametrize("layout", [None, "2d"])
def test_accumulation_follows_the_curve(bf16, layout):
    curve, _ = _curve(layout=layout, accumulation=4)
    np.testing.assert_allclose(curve, bf16[0], rtol=LAYOUT_CURVE)


def test_eager_code_gives_the_curve_of_the_graph(bf16):
    model, (x, y) = _model(), _data()
    optimizer = optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(STEPS):
        with flow.autocast("cuda", dtype=flow.bfloat16):  # the lists of enable_amp
            loss = F.cross_entropy(model(x).reshape(-1, CLASSES), y.reshape(-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    np.testing.assert_allclose(losses, bf16[0], rtol=EAGER_CURVE)


# -- what is cast ------------------------------------------------------------------------------------------------------


def _equations(jaxpr, inputs):
    """Yield (equation, number of the program's input that each operand is, whether in a loop), calls looked through."""
    return _walk(jaxpr, dict(zip(jaxpr.invars, inputs, strict=True)), False)


def _walk(jaxpr, known, looping):
    for eqn in jaxpr.eqns:
        operands = [None if isinstance(v, Literal) else known.get(v) for v in eqn.invars]
        inner = eqn.params.get("jaxpr") if eqn.primitive.name in ("jit", "pjit", "scan") else None
        if inner is None:
            yield eqn, operands, looping
            continue
        inside = dict(zip(inner.jaxpr.invars, operands, strict=True))
        yield from _walk(inner.jaxpr, inside, looping or eqn.primitive.name == "scan")


def _casts_of_weights(program):
    """Return for each input of the program that is cast to bfloat16 in which places: True within a loop."""
    jaxpr = program.jaxpr.jaxpr
    found = {}
    for eqn, operands, looping in _equations(jaxpr, range(len(jaxpr.invars))):
        if eqn.primitive.name == "convert_element_type" and eqn.params["new_dtype"] == flow.bfloat16.np:
            if operands[0] is not None:
                found.setdefault(operands[0], []).append(looping)
    return found


@pytest.mark.parametrize("layout", [None, "2d"])
@pytest.mark.parametrize("accumulation", [1, 4])
def test_each_weight_is_cast_once_per_step(accumulation, layout):
    _, graph = _curve(layout=layout, accumulation=accumulation, steps=1)
    casts = _casts_of_weights(graph.program)
    # per block 6 weights and biases; of what is outside only the tied embedding, which enters one product
    assert len(casts) == 2 * 6 * 2 + 1
    assert all(places == [False] for places in casts.values())


class Row(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(64, 128, bias=False), nn.Linear(128, 64, bias=False)

    def forward(self, x):
        return x + self.down(self.up(x).relu())


class Rows(nn.Graph):
    def __init__(self, model, stage, recompute):
        super().__init__()
        self.model = model
        self.add_optimizer(flow.optim.Adam(model.parameters()))
        self.config.enable_amp(True, dtype=flow.bfloat16)
        if stage:
            self.config.enable_zero(True, stage=stage, shard_min_size=1)
        for block in self.model if recompute else ():
            block.to(nn.graph.GraphModule).activation_checkpointing = True

    def build(self, x):
        loss = self.model(x).square().mean()
        loss.backward()
        return loss


@pytest.mark.parametrize(("stage", "recompute"), [(0, True), (3, False), (3, True)])
def test_casts_of_weights_are_not_saved_where_memory_is_spared(stage, recompute):
    place, layers = flow.placement("cpu", [0, 1, 2, 3]), 12
    with flow.abstract():
        model = nn.Sequential(*(Row() for _ in range(layers))).to_global(place, B)
        x = flow.zeros(4, 64, placement=place, sbp=S(0))
    graph = Rows(model, stage, recompute)
    memory = graph.memory(x, compiled=False)
    loops = [e for e in graph.program.plan.program.eqns if e.primitive.name == "scan"]
    saved = [v.aval for e in loops for v in e.outvars if v.aval.dtype == flow.bfloat16.np]
    assert len(loops) >= 2 and not any(a.shape in ((layers, 128, 64), (layers, 64, 128)) for a in saved)
    assert memory.activations < layers * 64 * 128 * 2 * 2 / 4  # the casts of all layers would be four times this


def test_parameters_optimizer_state_and_gradients_stay_float32(bf16):
    _, graph = bf16
    assert {p.dtype for p in graph.model.origin.parameters()} == {flow.float32}
    state = graph._g.optimizers[0].optimizer.state_tensors()
    assert {t.dtype for t in state} == {flow.float32, flow.int64}


def test_ops_run_in_the_dtype_of_their_list():
    class Ask(nn.Graph):
        def __init__(self):
            super().__init__()
            self.config.enable_amp(True, dtype=flow.bfloat16)

        def build(self, x):
            product = x @ x
            return product, product.softmax(0), product.relu(), flow.sum(product), x + product

    x = flow.randn(4, 4)
    graph = Ask()
    assert [t.dtype for t in graph(x)] == [flow.bfloat16, flow.float32, flow.bfloat16, flow.float32, flow.float32]
    lists = flow.amp.lists.ACCELERATOR.changed(lower=["softmax"], float32=["matmul"])
    graph.config.enable_amp(True, dtype=flow.float16, lists=lists)
    assert [t.dtype for t in graph(x)] == [flow.float32, flow.float16, flow.float32, flow.float32, flow.float32]
    graph.config.enable_amp(False)
    assert {t.dtype for t in graph(x)} == {flow.float32}
    with flow.autocast("cpu", dtype=flow.bfloat16):  # the block around the call says it, and is part of the signature
        assert graph(x)[0].dtype == flow.bfloat16
    assert graph(x)[0].dtype == flow.float32
    assert len(graph._g.programs) == 4
    assert not flow.is_autocast_enabled()


def test_a_block_inside_build_is_part_of_the_key_of_equal_layers():
    class Mixed(nn.Graph):
        def __init__(self, layers):
            super().__init__()
            self.layers = layers

        def build(self, x):
            outs = []
            for dtype in (None, flow.bfloat16, flow.float16, None):
                with flow.autocast("cpu", dtype=dtype or flow.bfloat16, enabled=dtype is not None):
                    outs += [layer(x) for layer in self.layers]
            return outs

    graph = Mixed(nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)]))
    found = [t.dtype for t in graph(flow.randn(4, 8))]
    wanted = [flow.float32, flow.bfloat16, flow.float16, flow.float32]
    assert found == [d for d in wanted for _ in range(2)]


def test_compile_follows_the_block_around_the_call():
    product = flow.compile(lambda x: x @ x)
    x = flow.randn(4, 4)
    with flow.autocast("cpu", dtype=flow.bfloat16):
        assert product(x).dtype == flow.bfloat16
    assert product(x).dtype == flow.float32


def test_checkpointed_layers_compute_the_same():
    curves = []
    for checkpointing in (False, True):
        model, (x, y) = _model(), _data()
        graph = Train(model, optim.SGD(model.parameters(), lr=0.1), flow.bfloat16)
        for block in graph.model.blocks:
            block.to(nn.graph.GraphModule).activation_checkpointing = checkpointing
        curves.append([graph(x, y).item() for _ in range(4)])
    np.testing.assert_allclose(*curves, rtol=LAYOUT_CURVE)


# -- master weights ----------------------------------------------------------------------------------------------------


def test_parameters_of_lower_precision_get_masters(exact):
    model, (x, y) = _model().to(flow.bfloat16), _data()
    optimizer = optim.AdamW(model.parameters(), lr=3e-3)
    graph = Train(model, optimizer, flow.bfloat16)
    losses = [graph(x, y).item() for _ in range(STEPS)]
    for p in model.parameters():
        master = optimizer.state[p][MASTER]
        assert p.dtype == flow.bfloat16 and master.dtype == flow.float32
        np.testing.assert_array_equal(master.to(flow.bfloat16).to(flow.float32).numpy(), p.to(flow.float32).numpy())
    assert any(np.any(optimizer.state[p][MASTER].numpy() != p.to(flow.float32).numpy()) for p in model.parameters())
    # the weights start rounded to 8 bits, so this is the curve of a neighbour
    np.testing.assert_allclose(losses, exact, rtol=2 * BF16_CURVE)


def test_a_group_that_refuses_masters_is_left_alone_and_a_failed_build_changes_none():
    model, (x, y) = _model().to(flow.bfloat16), _data()
    optimizer = optim.AdamW([{"params": list(model.parameters()), "master_weights": False}])
    Train(model, optimizer, flow.bfloat16)(x, y)
    assert all(MASTER not in state for state in optimizer.state.values())

    optimizer = optim.AdamW(model.parameters())
    with pytest.raises(flow.errors.SbpjaxError):
        Train(model, optimizer, flow.bfloat16)(x, y.to(flow.float32)[:3])
    assert "master_weights" not in optimizer.param_groups[0]
    assert not optimizer.state


# -- float16 with a loss scale -----------------------------------------------------------------------------------------


def test_float16_with_a_scaler_follows_the_float32_curve(exact):
    scaler = flow.amp.GradScaler(init_scale=2.0**10, growth_interval=5)
    curve, _ = _curve(amp=flow.float16, scaler=scaler)
    np.testing.assert_allclose(curve, exact, rtol=BF16_CURVE)
    assert scaler.get_scale() == 2.0 ** (10 + STEPS // 5)


@pytest.mark.parametrize(("layout", "accumulation"), [(None, 4), ("2d", 1)])
def test_a_step_that_overflows_is_left_out_and_halves_the_scale(layout, accumulation):
    scaler = flow.amp.GradScaler(init_scale=2.0**30)  # times a gradient of 1e-3 that is beyond 65504
    model, (x, y) = _model(), _data()
    if layout is not None:
        x, y = _lay_out(model, x, y, layout)
    optimizer = optim.AdamW(model.parameters(), lr=3e-3)
    graph = Train(model, optimizer, flow.float16, accumulation, scaler)
    graph.compile(x, y)
    before = [p.numpy().copy() for p in model.parameters()]
    scale = scaler.get_scale()
    skipped = -1
    for _ in range(30):
        skipped += 1
        graph(x, y)
        now = [p.numpy() for p in model.parameters()]
        if scaler.get_scale() == scale:  # the first step that was made
            break
        assert scaler.get_scale() == scale / 2
        scale /= 2
        for a, b in zip(now, before, strict=True):
            np.testing.assert_array_equal(a, b)
        assert {int(t.item()) for t in optimizer.state_tensors() if not t.ndim} == {0}
    assert 3 < skipped < 30
    assert all(np.any(a != b) for a, b in zip(now, before, strict=True) if b.size > DIM)
    assert {int(t.item()) for t in optimizer.state_tensors() if not t.ndim} == {1}


def test_errors():
    graph = nn.Graph()
    with pytest.raises(ValueError, match="lists are a value of amp.lists"):
        graph.config.enable_amp(True, lists={"matmul": "lower"})
