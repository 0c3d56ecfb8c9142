"""Programs as ONNX models: each kind of operation gives on every engine what XLA gives, with a free batch too."""

from importlib import util

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import EngineError
from tests.support.graphs import Plain

pytest.importorskip("onnx", reason="needs the extra onnx")
ENGINES = [name for name in ("openvino", "onnxruntime") if util.find_spec(name) is not None]
pytestmark = pytest.mark.skipif(not ENGINES, reason="needs the extra openvino or onnx")
F = nn.functional
SHORT = {"rtol": 2e-5, "atol": 2e-6}

FLOATS = {
    "arithmetic": lambda x: (x + 2) * x / (x.abs() + 1) - x**2,
    "exponentials": lambda x: (x.exp(), x.expm1(), (x.abs() * 1e-4).log1p(), (x.abs() * 50).log1p(), x.abs().log()),
    "small expm1": lambda x: (x * 1e-5).expm1(),
    "roots": lambda x: (x.abs().sqrt(), (x.abs() + 1).rsqrt(), x.sign(), x.floor(), x.ceil(), x.round()),
    "trigonometry": lambda x: (
        flow.atan2(x, -x.sin()),
        flow.atan2(x, x * 0),
        x.sin(),
        x.cos(),
        x.tanh(),
        x.sigmoid(),
        x.clamp(-0.9, 0.9).asin(),
        x.atan(),
    ),
    "activations": lambda x: (F.relu(x), F.gelu(x), F.silu(x), F.softplus(x), F.elu(x), F.leaky_relu(x), F.mish(x)),
    "comparisons": lambda x: (x > 0, x <= 0.5, x == x, x != 0, (x > 0) & (x < 1), ~(x > 0), (x > 0) | (x < -1)),
    "selection": lambda x: (flow.where(x > 0, x, -x), x.masked_fill(x < 0, 7.0), x.clamp(min=0.1), x.maximum(-x)),
    "casts": lambda x: (x.int(), (x * 10).long(), (x > 0).float(), x.double().float(), x.long().float()),
    "whole numbers": lambda x: ((x * 20).long() // 3, (x * 20).long() % 7, -(x * 20).long().abs()),
    "sums": lambda x: (x.sum(), x.sum(1), x.mean(-1, keepdim=True), x.var(1), x.std(), x.amax(1), x.amin(-1)),
    "products of all": lambda x: ((x * 0.5).prod(1), (x > 0).all(1), (x > 0).any(-1)),
    "places": lambda x: (x.argmax(1), x.argmin(-1), x.max(1)[0], x.min(1)[1]),
    "running sums": lambda x: (x.cumsum(1), x.flip(1), x.roll(1, 1)),
    "sorting": lambda x: (x.sort(1)[0], x.sort(1, descending=True)[1], x.topk(2, dim=1)[0]),
    "softmax": lambda x: (x.softmax(-1), x.log_softmax(1), x.logsumexp(1)),
    "norms": lambda x: (F.layer_norm(x, (6,)), F.normalize(x, dim=1), x.norm(dim=1)),
    "shapes": lambda x: (x.reshape(-1, 3), x.unsqueeze(1), x.transpose(1, 2), x.flatten(1), x.permute(2, 0, 1)),
    "joins": lambda x: (flow.cat([x, x * 2], 1), flow.stack([x, -x], 1), x.repeat(1, 2, 1), x.chunk(2, 1)[1]),
    "slices": lambda x: (x[:, 1:3], x[:, ::2], x[..., -1], x[:, None, 0], x[:, :, [0, 2]], x[:, 1:, 2:4]),
    "padding": lambda x: (
        F.pad(x, (1, 2)),
        F.pad(x, (0, -1, 1, 1), value=3.0),
        F.pad(x[:, None], (1, 1), mode="reflect"),
    ),
    "broadcasts": lambda x: x[:, :1] + x[:, :, :1] * flow.arange(6) + flow.ones(4, 1),
    "matrices": lambda x: (
        x @ x.transpose(1, 2),
        x @ flow.ones(6, 2),
        flow.einsum("btc,btd->bcd", x, x),
        x @ flow.ones(6),
    ),
    "look-ups": lambda x: (
        F.embedding((x.abs() * 3).long() % 5, flow.arange(10.0).reshape(5, 2)),
        x.take_along_dim((x > 0).long(), 1),
    ),
    "gathers": lambda x: (
        x.gather(1, (x > 0).long()),
        x.index_select(2, flow.tensor([3, 0])),
        x.diagonal(dim1=1, dim2=2),
    ),
    "masks": lambda x: (x.tril(), x.triu(1), (x > 0).long().cumsum(1)),
    "attention": lambda x: (
        F.scaled_dot_product_attention(x, x, x, is_causal=True),
        F.scaled_dot_product_attention(x, x, x),
    ),
    "masked rows": lambda x: F.scaled_dot_product_attention(x, x, x, attn_mask=(x[..., :4] > 1e9)),
}
IMAGES = {
    "convolutions": lambda x: (
        F.conv2d(x, W(4, 3, 3, 3), padding=1),
        F.conv2d(x, W(4, 3, 3, 3), stride=2, dilation=2),
        F.conv2d(x, W(6, 1, 3, 3), groups=3),
        F.conv2d(x, W(3, 1, 3, 3), stride=2, padding=2, dilation=2, groups=3),
        F.conv2d(x, W(4, 3, 1, 1), stride=2),
        F.conv1d(x[:, :, 0], W(2, 3, 3)),
    ),
    "transposed convolutions": lambda x: (
        F.conv_transpose2d(x, W(3, 4, 3, 3), stride=2, padding=1),
        F.conv_transpose2d(x, W(3, 4, 2, 2)),
    ),
    "pooling": lambda x: (
        F.max_pool2d(x, 2),
        F.max_pool2d(x, 3, 2, 1),
        F.avg_pool2d(x, 2),
        F.avg_pool2d(x, 3, 1, 1),
        F.adaptive_avg_pool2d(x, 1),
    ),
    "image norms": lambda x: (F.group_norm(x, 3), F.instance_norm(x), nn.BatchNorm2d(3).eval()(x)),
    "resizing": lambda x: (F.interpolate(x, scale_factor=2), F.interpolate(x, size=(4, 4), mode="bilinear")),
    "pixel shuffle": lambda x: F.pixel_unshuffle(x, 2),
}
LOOPS = {
    "cond": lambda x: flow.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, x),
    "scatter": lambda x: (
        x.scatter(1, (x > 0).long(), x * 2),
        flow.zeros(5, 6).index_add(0, flow.tensor([0, 3, 0, 1]), x[0]),
    ),
}


def W(*shape):
    size = int(np.prod(shape))
    return (flow.arange(float(size)) * 0.37).sin().reshape(*shape)


def given(shape):
    return flow.tensor(np.random.default_rng(3).standard_normal(shape).astype(np.float32))


def flat(found):
    return [t.numpy() for t in (found if isinstance(found, tuple) else (found,))]


def close(found, wanted):
    for a, b in zip(flat(found), flat(wanted), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, **SHORT)


CASES = [(name, f, (3, 4, 6)) for name, f in FLOATS.items()] + [(name, f, (2, 3, 8, 8)) for name, f in IMAGES.items()]


# An export with a free batch refuses these itself.
NOT_FREE = {"sums", "slices"}
ALL = [*CASES, *((name, f, (3, 4, 6)) for name, f in LOOPS.items())]


@pytest.mark.parametrize("name, f, shape", [pytest.param(*case, id=case[0]) for case in ALL])
def test_operations(name, f, shape):
    x = given(shape)
    graph = Plain(lambda g, x: f(x))
    wanted = graph(x)
    for engine in ENGINES:
        getattr(graph.config, f"enable_{engine}")(True, verify=False)
        close(graph(x), wanted)


FREE = [case for case in CASES if case[0] not in NOT_FREE]


@pytest.mark.parametrize("name, f, shape", [pytest.param(*case, id=case[0]) for case in FREE])
@pytest.mark.exhaustive
def test_operations_with_a_free_batch(name, f, shape, tmp_path):
    Plain(lambda g, x: f(x)).export(tmp_path / "x", given(shape), dynamic_batch=True)
    loaded, x = flow.load_graph(tmp_path / "x"), given((5, *shape[1:]))
    wanted = loaded(x)
    for engine in ENGINES:
        getattr(loaded, f"enable_{engine}")(True, verify=False)
        close(loaded(x), wanted)


def test_what_has_no_counterpart_is_named():
    graph = Plain(lambda g, x: flow.linalg.eigh(x @ x.T)[0])
    getattr(graph.config, f"enable_{ENGINES[-1]}")(True)
    with pytest.raises(EngineError, match=r"(?s)with enable_.*seen: .*custom_call.*syevd.*rule: .*fix: "):
        graph(given((4, 4)))


def test_a_convolution_in_groups_is_one(tmp_path):
    import onnx

    x, w = given((2, 3, 8, 8)), W(3, 1, 3, 3)
    graph = Plain(lambda g, x: F.conv2d(x, w, stride=2, padding=1, groups=3))
    graph.export(tmp_path / "x", x, onnx=True)
    (node,) = (
        n for n in onnx.load(tmp_path / "x" / "model.onnx").graph.node if n.op_type not in ("Identity", "Reshape")
    )
    assert node.op_type == "Conv" and {a.name: a.i for a in node.attribute}["group"] == 3


@pytest.mark.parametrize("free", [False, True], ids=["", "free batch"])
@pytest.mark.parametrize(
    "f, shape, wanted",
    [
        (lambda x: F.max_pool2d(F.relu(x), 3, 2, 1), (2, 3, 11, 14), ["Relu", "MaxPool"]),
        (lambda x: F.max_pool2d(x, 3, 1, 1, dilation=2), (2, 3, 11, 14), ["MaxPool"]),
        (lambda x: F.max_pool2d(x, (3, 2), (2, 1), ceil_mode=True), (2, 3, 12, 14), ["MaxPool"]),
        (lambda x: F.max_pool1d(x, 4), (2, 3, 14), ["MaxPool"]),
        (lambda x: F.max_pool3d(x, 2), (2, 3, 4, 6, 8), ["MaxPool"]),
        # What only looks like it: other values are taken, or another number than 0.
        (lambda x: flow.where(x <= 0, -x, x), (2, 3), ["LessOrEqual", "Neg", "Where"]),
        (lambda x: flow.where(x <= 1, 0.0, x), (2, 3), ["LessOrEqual", "Where"]),
        (lambda x: flow.where(x[:, :, 0::2] > x[:, :, 1::2], x[:, :, 0::2], x[:, :, 1::2]), (2, 3, 8), None),
    ],
)
def test_a_pooling_and_a_relu_are_one_node(f, shape, wanted, free, tmp_path):
    import onnx

    x = given(shape)
    Plain(lambda g, x: f(x)).export(tmp_path / "x", x, onnx=True, dynamic_batch=free)
    nodes = onnx.load(tmp_path / "x" / "model.onnx").graph.node
    found = [n.op_type for n in nodes if n.op_type not in ("Identity", "Reshape", "Slice")]
    assert found == wanted or (wanted is None and "Where" in found and "MaxPool" not in found)
    loaded = flow.load_graph(tmp_path / "x")
    before = loaded(x).numpy()
    for engine in ENGINES:
        getattr(loaded, f"enable_{engine}")(True, verify=False)
        close(loaded(x), flow.tensor(before))


def test_tensorrt_takes_the_files_without_a_gpu(tmp_path):
    trt = pytest.importorskip("tensorrt_rtx", reason="needs the wheel tensorrt-rtx, which is proprietary")
    from tests.engines.test_program import FAMILIES, arguments, forward

    for name in ("gpt2", "bert", "residual", "vit"):
        with flow.no_grad():
            forward(FAMILIES[name]()).export(tmp_path / name, *arguments(name), onnx=True)
        log = trt.Logger(trt.Logger.ERROR)
        builder = trt.Builder(log)
        network = builder.create_network(0)
        parser = trt.OnnxParser(network, log)
        parsed = parser.parse_from_file(str(tmp_path / name / "model.onnx"))
        assert parsed, [str(parser.get_error(i)) for i in range(parser.num_errors)]
        config = builder.create_builder_config()
        config.num_compute_capabilities = 1
        config.set_compute_capability(trt.ComputeCapability.SM89, 0)
        assert builder.build_serialized_network(network, config) is not None
