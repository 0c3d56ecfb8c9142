"""The rarer layers against PyTorch's: output, gradients, buffers, repr; local or with the batch split, in turn."""

import itertools

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import nn
from tests.support.torch_layers import close, pair

LAYERS = [
    ("ConvTranspose1d", (4, 6, 3), {"stride": 2, "padding": 1, "output_padding": 1}, (4, 4, 5)),
    ("ConvTranspose2d", (4, 6, 3), {}, (4, 4, 5, 4)),
    ("ConvTranspose2d", (4, 6, (3, 2)), {"stride": 2, "groups": 2, "bias": False, "dilation": (1, 2)}, (4, 4, 5, 4)),
    ("ConvTranspose3d", (2, 3, 2), {"stride": 2}, (4, 2, 3, 2, 2)),
    ("InstanceNorm1d", (3,), {}, (4, 3, 6)),
    ("InstanceNorm2d", (3,), {"affine": True, "track_running_stats": True}, (4, 3, 4, 5)),
    ("InstanceNorm2d", (3,), {"eps": 1e-3}, (3, 4, 5)),
    ("InstanceNorm3d", (2,), {"affine": True}, (4, 2, 2, 3, 2)),
    ("LocalResponseNorm", (3,), {"alpha": 0.1}, (4, 5, 3, 2)),
    ("PixelShuffle", (2,), {}, (4, 8, 3, 2)),
    ("PixelUnshuffle", (2,), {}, (4, 2, 4, 6)),
    ("ChannelShuffle", (2,), {}, (4, 6, 3)),
    ("Upsample", (), {"scale_factor": 2}, (4, 3, 4, 5)),
    ("Upsample", (), {"size": (5, 7), "mode": "bilinear", "align_corners": False}, (4, 3, 4, 5)),
    ("Upsample", (), {"scale_factor": (1.5, 2.0), "mode": "bicubic"}, (4, 2, 4, 5)),
    ("Upsample", (), {"scale_factor": 2, "mode": "trilinear", "align_corners": True}, (4, 1, 2, 3, 2)),
    ("Upsample", (), {"size": 7, "mode": "nearest-exact"}, (4, 2, 5)),
    ("UpsamplingNearest2d", (), {"size": (6, 4)}, (4, 3, 4, 5)),
    ("UpsamplingBilinear2d", (), {"scale_factor": 2}, (4, 3, 4, 5)),
    ("Unfold", (2,), {"stride": 2, "padding": 1}, (4, 3, 4, 6)),
    ("Fold", ((4, 6), 2), {"stride": 2}, (4, 12, 6)),
    ("MaxPool3d", (2,), {"stride": 1}, (4, 2, 3, 4, 3)),
    ("AvgPool3d", (2,), {"ceil_mode": True}, (4, 2, 3, 4, 3)),
    ("AdaptiveAvgPool3d", ((2, 1, None),), {}, (4, 2, 3, 4, 3)),
    ("AdaptiveMaxPool1d", (3,), {}, (4, 3, 8)),
    ("AdaptiveMaxPool3d", (2,), {}, (4, 2, 3, 4, 3)),
    ("LPPool1d", (2, 3), {}, (4, 3, 9)),
    ("LPPool2d", (2, 2), {"ceil_mode": True}, (4, 3, 5, 4)),
    ("RReLU", (0.25, 0.25), {}, (4, 6)),
    ("Softmin", (1,), {}, (4, 6)),
    ("Softmax2d", (), {}, (4, 3, 2, 2)),
    ("AlphaDropout", (0.0,), {}, (4, 6)),
    ("FeatureAlphaDropout", (0.0,), {}, (4, 6, 2)),
    ("Dropout3d", (0.0,), {}, (4, 2, 2, 2, 2)),
    ("ConstantPad1d", (2, 3.5), {}, (4, 3, 5)),
    ("ConstantPad2d", ((1, 0, 2, 1), -1.0), {}, (4, 3, 5, 4)),
    ("ConstantPad3d", (1, 0.5), {}, (4, 1, 2, 2, 2)),
    ("ZeroPad1d", (1,), {}, (4, 3, 5)),
    ("ZeroPad2d", ((1, -1, 0, 2),), {}, (4, 3, 5, 4)),
    ("ZeroPad3d", (1,), {}, (4, 1, 2, 2, 2)),
    ("ReflectionPad1d", (2,), {}, (4, 3, 5)),
    ("ReflectionPad2d", ((1, 2, 3, 0),), {}, (4, 3, 5, 4)),
    ("ReflectionPad3d", (1,), {}, (4, 1, 2, 3, 2)),
    ("ReplicationPad1d", (2,), {}, (4, 3, 5)),
    ("ReplicationPad2d", ((1, 2, 3, 0),), {}, (4, 3, 5, 4)),
    ("ReplicationPad3d", (1,), {}, (4, 1, 2, 3, 2)),
    ("CircularPad1d", ((2, 1),), {}, (4, 3, 5)),
    ("CircularPad2d", ((1, 2, 3, 0),), {}, (4, 3, 5, 4)),
    ("CircularPad3d", (1,), {}, (4, 1, 2, 3, 2)),
]


@pytest.mark.parametrize(
    ("layer", "where"), list(zip(LAYERS, itertools.cycle(["local", "split", "split"]))),
    ids=lambda v: str(v).replace(" ", ""),
)  # fmt: skip
def test_layer_equals_torchs(layer, where):
    name, args, options, shape = layer
    ours, theirs = pair(name, args, options)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    data = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x, y = flow.tensor(data), torch.tensor(data)
    if where == "split":
        placement = flow.placement("cpu", [0, 1, 2, 3])
        ours.to_global(placement, flow.sbp.broadcast)
        x = x.to_global(placement, flow.sbp.split(0))
    x.requires_grad_()
    y.requires_grad_()
    a, b = ours(x), theirs(y)
    close(a, b, "output")
    weights = np.random.default_rng(1).standard_normal(tuple(b.shape)).astype(np.float32)
    cotangent = flow.tensor(weights)
    if where == "split":
        cotangent = cotangent.to_global(placement, flow.sbp.broadcast)
    (a * cotangent).sum().backward()
    (b * torch.tensor(weights)).sum().backward()
    close(x.grad, y.grad, "gradient of the input")
    for (key, p), q in zip(ours.named_parameters(), theirs.parameters()):
        close(p.grad, q.grad, f"gradient of {key}")
    for (key, p), q in zip(ours.named_buffers(), theirs.buffers()):
        close(p, q, key)
    ours.eval()
    theirs.eval()
    close(ours(x), theirs(y), "evaluation")


def test_transposed_convolution_of_a_given_size():
    ours, theirs = pair("ConvTranspose2d", (2, 3, 3), {"stride": 2, "padding": 1})
    x = np.random.default_rng(0).standard_normal((2, 2, 4, 5)).astype(np.float32)
    for size in ((8, 10), (7, 9), (2, 3, 8, 9)):
        close(ours(flow.tensor(x), output_size=size), theirs(torch.tensor(x), output_size=size))
    with pytest.raises(ValueError, match="valid sizes range"):
        ours(flow.tensor(x), output_size=(20, 20))
    with pytest.raises(ValueError, match="padding mode is supported"):
        nn.ConvTranspose1d(1, 1, 1, padding_mode="reflect")


def test_unpooling_undoes_pooling():
    x = np.random.default_rng(0).standard_normal((2, 3, 7, 6)).astype(np.float32)
    for package, tensor in ((nn, flow.tensor), (torch.nn, torch.tensor)):
        out, place = package.MaxPool2d(2, return_indices=True)(tensor(x))
        layer = package.MaxUnpool2d(2)
        result = layer(out, place, output_size=(7, 6))
        if package is nn:
            ours, text = result, repr(layer)
    close(ours, result)
    assert text == repr(layer)


def test_sync_batch_norm_takes_the_place_of_batch_norm():
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.Sequential(nn.BatchNorm1d(2)))
    weight = model[1].weight
    made = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert type(made[1]) is nn.SyncBatchNorm and made[1].weight is weight and type(made[2][0]) is nn.SyncBatchNorm
    x = np.random.default_rng(0).standard_normal((4, 3, 2, 2)).astype(np.float32)
    layer, reference = nn.SyncBatchNorm(3), torch.nn.BatchNorm2d(3)
    split = flow.tensor(x).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(0))
    layer.to_global(flow.placement("cpu", [0, 1]), flow.sbp.broadcast)
    close(layer(split), reference(torch.tensor(x)))
    close(layer.running_var, reference.running_var)


def test_fused_batch_norm_adds_and_cuts():
    x = np.random.default_rng(0).standard_normal((4, 3, 2, 2)).astype(np.float32)
    ours = nn.FusedBatchNorm2d(3)(flow.tensor(x), flow.tensor(x))
    close(ours, torch.relu(torch.nn.BatchNorm2d(3)(torch.tensor(x)) + torch.tensor(x)))


BAGS = [
    ({"mode": "sum"}, (3, 4), None, None),
    ({"mode": "mean", "padding_idx": 2}, (3, 4), None, None),
    ({"mode": "max"}, (3, 4), None, None),
    ({"mode": "mean"}, (9,), [0, 3, 3, 7], None),
    ({"mode": "sum", "include_last_offset": True}, (9,), [0, 2, 5, 9], "weights"),
    ({"mode": "max", "padding_idx": 1}, (9,), [0, 4, 8], None),
    ({"mode": "sum", "max_norm": 1.0}, (3, 4), None, "weights"),
]


@pytest.mark.parametrize(("options", "shape", "offsets", "weighted"), BAGS, ids=str)
def test_embedding_bag(options, shape, offsets, weighted):
    ours, theirs = pair("EmbeddingBag", (6, 3), options)
    assert repr(ours) == repr(theirs)
    index = np.random.default_rng(0).integers(0, 6, shape)
    weight = np.random.default_rng(1).random(shape).astype(np.float32)
    given = [(t(index), *([t(offsets)] if offsets else [None])) for t in (flow.tensor, torch.tensor)]
    factors = [t(weight) if weighted else None for t in (flow.tensor, torch.tensor)]
    a, b = ours(*given[0], factors[0]), theirs(*given[1], factors[1])
    close(a, b)
    (a * a).sum().backward()
    (b * b).sum().backward()
    close(ours.weight.grad, theirs.weight.grad)


def test_embedding_bag_refuses_weights_of_means():
    with pytest.raises(NotImplementedError, match="mode='sum'"):
        nn.EmbeddingBag(4, 2)(flow.tensor([[0, 1]]), per_sample_weights=flow.ones(1, 2))


LOSSES = [
    ("MarginRankingLoss", {"margin": 0.3}, "xyt"),
    ("HingeEmbeddingLoss", {"margin": 0.5}, "xt"),
    ("CosineEmbeddingLoss", {"margin": 0.1}, "xyr"),
    ("SoftMarginLoss", {}, "xt"),
    ("MultiMarginLoss", {"p": 2}, "xc"),
    ("MultiLabelMarginLoss", {}, "xl"),
    ("MultiLabelSoftMarginLoss", {}, "xu"),
    ("PoissonNLLLoss", {"full": True}, "xu"),
    ("GaussianNLLLoss", {"full": True}, "xyv"),
    ("TripletMarginLoss", {"swap": True}, "xyz"),
    ("TripletMarginWithDistanceLoss", {"margin": 2.0, "swap": True}, "xyz"),
    ("CosineSimilarity", {"dim": 1}, "xy"),
    ("PairwiseDistance", {"p": 1.0, "keepdim": True}, "xy"),
]


@pytest.mark.parametrize(("name", "options", "kinds"), LOSSES, ids=str)
def test_loss_equals_torchs(name, options, kinds):
    rng = np.random.default_rng(0)
    x, y, z = (rng.standard_normal((4, 5)).astype(np.float32) for _ in range(3))
    signs = np.sign(rng.standard_normal((4, 5))).astype(np.float32)
    arrays = {
        "x": x, "y": y, "z": z, "t": signs, "r": signs[:, 0], "c": rng.integers(0, 5, 4), "u": (signs > 0) * 1.0,
        "l": np.array([[1, 0, -1, 2, 2]] * 4), "v": np.abs(z) + 0.1,
    }  # fmt: skip
    arrays["u"] = arrays["u"].astype(np.float32)
    for reduction in ("mean", "none") if "Loss" in name else (None,):
        extra = {} if reduction is None else {"reduction": reduction}
        ours, theirs = getattr(nn, name)(**options, **extra), getattr(torch.nn, name)(**options, **extra)
        assert repr(ours) == repr(theirs)
        a = flow.tensor(x, requires_grad=True)
        b = torch.tensor(x, requires_grad=True)
        va = ours(a, *[flow.tensor(arrays[k]) for k in kinds[1:]])
        vb = theirs(b, *[torch.tensor(arrays[k]) for k in kinds[1:]])
        close(va, vb)
        va.sum().backward()
        vb.sum().backward()
        close(a.grad, b.grad)


@pytest.mark.filterwarnings("ignore:size_average and reduce:UserWarning")
def test_the_old_options_of_losses_choose_the_reduction():
    x, y = np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)
    for options in ({"size_average": False}, {"reduce": False}, {"size_average": True, "reduce": True}):
        ours = nn.MSELoss(**options)(flow.tensor(x), flow.tensor(y))
        close(ours, torch.nn.MSELoss(**options)(torch.tensor(x), torch.tensor(y)))
    assert nn.functional.cross_entropy(flow.ones(2, 3), flow.tensor([0, 1]), None, False).item() > 2


@pytest.mark.filterwarnings("ignore:Using a target size:UserWarning")
def test_weighted_squared_error():
    x, w = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([1.0, 2.0, 0.0], np.float32)
    for name in ("mse_loss", "l1_loss", "huber_loss"):
        for reduction in ("mean", "sum", "none"):
            ours = getattr(nn.functional, name)(
                flow.tensor(x), flow.zeros(2, 3), weight=flow.tensor(np.stack([w, w])), reduction=reduction
            )
            theirs = getattr(torch.nn.functional, name)(
                torch.tensor(x), torch.zeros(2, 3), weight=torch.tensor(np.stack([w, w])), reduction=reduction
            )
            close(ours, theirs)


def test_ctc_loss_equals_torchs_under_a_split_batch():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((7, 4, 5)).astype(np.float32)
    targets, given, wanted = rng.integers(1, 5, (4, 3)), [7, 7, 6, 5], [3, 2, 1, 3]
    ours, theirs = nn.CTCLoss(), torch.nn.CTCLoss()
    b = torch.tensor(x, requires_grad=True)
    vb = theirs(b.log_softmax(2), torch.tensor(targets), tuple(given), tuple(wanted))
    vb.backward()
    a = flow.tensor(x).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(1)).requires_grad_()
    t = flow.tensor(targets).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(0))
    va = ours(flow.nn.functional.log_softmax(a, 2), t, given, wanted)
    va.backward()
    close(va, vb)
    close(a.grad, b.grad)


def test_random_layers_keep_their_moments():
    flow.manual_seed(0)
    x = flow.randn(64, 32, 4)
    for layer in (nn.AlphaDropout(0.3), nn.FeatureAlphaDropout(0.3)):
        y = layer(x).numpy()
        assert abs(y.mean()) < 0.06 and abs(y.std() - 1) < 0.06
    slopes = (nn.RReLU(0.1, 0.3)(-flow.ones(4000)).numpy() * -1).astype(np.float64)
    assert slopes.min() >= 0.1 and slopes.max() < 0.3 and abs(slopes.mean() - 0.2) < 0.005
    samples = nn.functional.gumbel_softmax(flow.tensor([[0.0, np.log(3.0)]]).expand(4000, 2), hard=True)
    assert set(np.unique(samples.numpy())) <= {0.0, 1.0} and abs(samples[:, 1].mean().item() - 0.75) < 0.03
    logits = flow.zeros(3, 4, requires_grad=True)
    (nn.functional.gumbel_softmax(logits, tau=0.5, dim=1)[:, 0]).sum().backward()
    assert logits.grad.abs().sum().item() > 0
    pooled = nn.FractionalMaxPool2d(2, output_ratio=0.5)(flow.randn(2, 3, 9, 8))
    assert tuple(pooled.shape) == (2, 3, 4, 4)


def test_adaptive_softmax():
    ours, theirs = pair("AdaptiveLogSoftmaxWithLoss", (8, 20), {"cutoffs": [4, 10], "div_value": 2.0})
    assert list(ours.state_dict()) == list(theirs.state_dict())
    x, t = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32), np.array([0, 3, 4, 9, 10, 19])
    a, b = ours(flow.tensor(x), flow.tensor(t)), theirs(torch.tensor(x), torch.tensor(t))
    close(a.output, b.output)
    close(a.loss, b.loss)
    a.loss.backward()
    b.loss.backward()
    close(ours.head.weight.grad, theirs.head.weight.grad)
    assert ours.predict(flow.tensor(x)).tolist() == theirs.predict(torch.tensor(x)).tolist()
    with pytest.raises(ValueError, match="cutoffs should be"):
        nn.AdaptiveLogSoftmaxWithLoss(8, 20, [10, 4])


def test_data_parallel_adds_a_prefix():
    model = nn.DataParallel(nn.Linear(2, 3))
    assert list(model.state_dict()) == ["module.weight", "module.bias"] and model(flow.ones(1, 2)).shape == (1, 3)
    state = model.state_dict()
    nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    nn.Linear(2, 3).load_state_dict(state)


def test_cross_map_norm_is_local_response_norm():
    # PyTorch's never takes the first channel out of its sum again, and its gradient is not that of its value: the
    # first two of two channels are what both agree on.
    x = torch.randn(4, 2, 3, 2)
    options = {"alpha": 0.1, "beta": 0.5}
    found = nn.CrossMapLRN2d(3, **options)(flow.tensor(x.numpy()))
    close(found, torch.nn.CrossMapLRN2d(3, **options)(x))
    wide = flow.tensor(torch.randn(2, 7, 3, 2).numpy())
    close(nn.CrossMapLRN2d(5, **options)(wide), nn.LocalResponseNorm(5, **options)(wide))


def test_spellings_of_oneflow():
    x = flow.arange(48.0).reshape(1, 12, 2, 2)
    wide = flow.nn.PixelShuffle(h_upscale_factor=3, w_upscale_factor=4)(x)
    assert wide.shape == (1, 1, 6, 8) and wide[0, 0, 0, :8].tolist() == [0.0, 4.0, 8.0, 12.0, 1.0, 5.0, 9.0, 13.0]
    with pytest.raises(ValueError, match="either upscale_factor is given"):
        flow.nn.PixelShuffle(2, h_upscale_factor=2)
    drawn = [
        flow.nn.Dropout(0.5, generator=flow.Generator().manual_seed(3))(flow.ones(64), addend=flow.ones(64))
        for _ in "ab"
    ]
    assert drawn[0].tolist() == drawn[1].tolist() and set(drawn[0].tolist()) == {1.0, 3.0}
    condition = flow.tensor([True, False])
    assert condition.where(flow.ones(2), flow.zeros(2)).tolist() == [1.0, 0.0]
    indices, counts = flow.unique(flow.tensor([3, 1, 1]), return_inverse=True, return_counts=True, dtype=flow.int32)[1:]
    assert indices.dtype == counts.dtype == flow.int32 and counts.tolist() == [2, 1]
    assert flow.argwhere(flow.tensor([0, 5]), dtype=flow.int32).dtype == flow.int32
    assert (
        flow.placement.all(device_type="cpu")
        == flow.env.all_device_placement(device_type="cpu")
        == flow.placement.all("cpu")
    )
    assert len(flow.nn.ParameterList(parameters=[flow.nn.Parameter(flow.ones(2))])) == 1
    assert flow.nn.Hardtanh(min_value=-2.0, max_value=2.0)(flow.tensor([-3.0, 3.0])).tolist() == [-2.0, 2.0]
    place = flow.placement("cpu", [0, 1])
    x = flow.ones(2).to_global(place, "B")
    assert x.to_global(place, "B") is x and x.to_global(place, "B", copy=True) is not x
    with flow.set_grad_enabled(is_train=False):
        assert not flow.is_grad_enabled()
