"""Functions of `nn.functional` that no layer's test reaches, against PyTorch's."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax.nn import functional as F

RTOL, ATOL = 2e-5, 2e-5

IMAGE, LINE, SMALL = (4, 4, 6, 5), (4, 4, 9), (4, 4)
CASES = [
    ("pad", IMAGE, {"pad": (1, 2)}),
    ("pad", IMAGE, {"pad": (1, -1, 2, 0), "value": 3.0}),
    ("pad", IMAGE, {"pad": (1, 2, 2, 1), "mode": "reflect"}),
    ("pad", IMAGE, {"pad": (1, 2, 0, 1), "mode": "replicate"}),
    ("pad", IMAGE, {"pad": (1, 2, 2, 1), "mode": "circular"}),
    ("interpolate", IMAGE, {"scale_factor": 2}),
    ("interpolate", IMAGE, {"size": (9, 7), "mode": "bilinear", "align_corners": True}),
    ("interpolate", LINE, {"size": 5, "mode": "linear", "align_corners": False}),
    ("unfold", IMAGE, {"kernel_size": 2, "stride": (2, 1)}),
    ("fold", (4, 16, 20), {"output_size": (6, 5), "kernel_size": (2, 2)}),
    ("pixel_shuffle", IMAGE, {"upscale_factor": 2}),
    ("pixel_unshuffle", (4, 2, 6, 4), {"downscale_factor": 2}),
    ("normalize", SMALL, {}),
    ("normalize", SMALL, {"p": 1.0, "dim": 0}),
    ("max_pool3d", (2, 2, 4, 5, 6), {"kernel_size": 2}),
    ("avg_pool3d", (2, 2, 4, 5, 6), {"kernel_size": (1, 2, 3)}),
    ("adaptive_avg_pool3d", (2, 2, 4, 5, 6), {"output_size": 2}),
    ("adaptive_max_pool1d", LINE, {"output_size": 4}),
    ("softmax", SMALL, {"dim": None}),
    ("softmax", SMALL, {"dim": 0, "dtype": "float64"}),
    ("softmin", SMALL, {"dim": 1}),
    ("relu_", SMALL, {}),
]

PAIRS = [
    ("cosine_similarity", {}, SMALL, SMALL),
    ("pairwise_distance", {"p": 1.0}, SMALL, SMALL),
    ("bilinear", {}, (4, 3), (4, 2), (5, 3, 2), (5,)),
    ("conv_transpose1d", {"stride": 2, "output_padding": 1}, LINE, (4, 3, 2), (3,)),
    ("conv_transpose2d", {"stride": 2, "padding": 1, "groups": 2}, IMAGE, (4, 3, 3, 2)),
    ("conv_transpose3d", {"dilation": 2}, (2, 2, 3, 4, 2), (2, 3, 2, 2, 2)),
    ("margin_ranking_loss", {"margin": 0.1}, (8,), (8,), "sign"),
    ("hinge_embedding_loss", {}, (8,), "sign"),
    ("soft_margin_loss", {}, (8,), "sign"),
    ("cosine_embedding_loss", {"margin": 0.2}, (8, 4), (8, 4), "sign"),
    ("triplet_margin_loss", {"swap": True}, (8, 4), (8, 4), (8, 4)),
    ("mse_loss", {}, (8, 1), (8, 1)),
    ("scaled_dot_product_attention", {"is_causal": True}, (2, 4, 3, 8), (2, 4, 5, 8), (2, 4, 5, 6)),
    ("scaled_dot_product_attention", {"enable_gqa": True, "scale": 0.3}, (2, 4, 3, 8), (2, 2, 5, 8), (2, 2, 5, 6)),
]


def array(shape, seed):
    rng = np.random.default_rng(seed)
    if shape == "sign":
        return np.sign(rng.standard_normal(8)).astype(np.float32)
    return rng.standard_normal(shape).astype(np.float32)


def check(name, options, arrays, fixed=0):
    """Compare results and gradients; the last `fixed` arguments get no gradient."""
    mine = {k: getattr(flow, v) if k == "dtype" else v for k, v in options.items()}
    other = {k: getattr(torch, v) if k == "dtype" else v for k, v in options.items()}
    writes = name.endswith("_")
    needs = [not writes and i < len(arrays) - fixed for i in range(len(arrays))]
    xs = [flow.tensor(a, requires_grad=n) for a, n in zip(arrays, needs)]
    ys = [torch.tensor(a, requires_grad=n) for a, n in zip(arrays, needs)]
    a, b = getattr(F, name)(*xs, **mine), getattr(torch.nn.functional, name)(*ys, **other)
    assert tuple(a.shape) == tuple(b.shape) and a.dtype.name == str(b.dtype).removeprefix("torch.")
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=RTOL, atol=ATOL)
    if writes:
        assert a is xs[0]
        return
    (a * a).sum().backward()
    (b * b).sum().backward()
    for x, y in zip(xs[: sum(needs)], ys):
        np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=10 * RTOL, atol=10 * ATOL)


@pytest.mark.filterwarnings("ignore:Implicit dimension choice:UserWarning")  # PyTorch's, on softmax(dim=None)
@pytest.mark.parametrize(("name", "shape", "options"), CASES, ids=str)
def test_of_one_tensor(name, shape, options):
    check(name, options, [array(shape, 0)])


@pytest.mark.parametrize("case", PAIRS, ids=str)
def test_of_several_tensors(case):
    name, options, *shapes = case
    check(name, options, [array(shape, i) for i, shape in enumerate(shapes)], fixed=shapes.count("sign"))


def test_losses_broadcast_their_target():
    a = F.l1_loss(flow.ones(3, 2), flow.zeros(2))
    assert a.item() == 1.0


def test_one_hot():
    x = np.array([[0, 2], [1, 1]])
    expected = torch.nn.functional.one_hot(torch.tensor(x))
    ours = F.one_hot(flow.tensor(x))
    assert ours.dtype == flow.int64 and ours.tolist() == expected.tolist()
    assert F.one_hot(flow.tensor(x), 4).shape == (2, 2, 4)
    with pytest.raises(RuntimeError, match="every number is in .0, 2."):
        F.one_hot(flow.tensor(x), 2)


def test_max_pool_indices():
    x = array(IMAGE, 0)
    values, places = F.max_pool2d(flow.tensor(x), 2, return_indices=True)
    _, expected = torch.nn.functional.max_pool2d(torch.tensor(x), 2, return_indices=True)
    np.testing.assert_array_equal(places.numpy(), expected.numpy())


def test_dropout_functions():
    flow.manual_seed(0)
    x = flow.ones(64, 8, 3)
    assert F.dropout(x, 0.5, training=False) is x
    assert F.dropout(x, 0.5, inplace=True) is x and (x.numpy() == 0).any()
    for function in (F.dropout1d, F.dropout2d, F.dropout3d):
        dropped = function(flow.ones(8, 8, 3, 2, 2)).numpy().reshape(8, 8, -1)
        assert (dropped.min(-1) == dropped.max(-1)).all()
    kept = F.alpha_dropout(flow.randn(20000), 0.3, training=True).numpy()
    assert abs(kept.mean()) < 0.05 and abs(kept.std() - 1) < 0.05
    with pytest.raises(ValueError, match="between 0 and 1"):
        F.dropout(x, 1.5)


def test_attention_masks_and_dropout():
    q, k, v = (array(s, i) for i, s in enumerate([(2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4)]))
    for mask in (np.arange(15).reshape(3, 5) % 3 > 0, array((3, 5), 3)):
        ours = F.scaled_dot_product_attention(*map(flow.tensor, (q, k, v)), attn_mask=flow.tensor(mask))
        theirs = torch.nn.functional.scaled_dot_product_attention(
            *map(torch.tensor, (q, k, v)), attn_mask=torch.tensor(mask)
        )
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=RTOL, atol=ATOL)
    flow.manual_seed(1)
    first = F.scaled_dot_product_attention(*map(flow.tensor, (q, k, v)), dropout_p=0.5).numpy()
    second = F.scaled_dot_product_attention(*map(flow.tensor, (q, k, v)), dropout_p=0.5).numpy()
    assert not np.array_equal(first, second)


def test_batch_norm_needs_statistics_in_evaluation():
    with pytest.raises(RuntimeError, match="running_mean and running_var"):
        F.batch_norm(flow.ones(2, 3), None, None)
