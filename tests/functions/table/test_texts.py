"""What `_core.functions.table.texts` derives is true of every op that it is said of: layouts, errors, dtypes."""

import functools
import inspect

import pytest

import sbpjax as flow
from sbpjax._core.functions.table import table, texts
from sbpjax._core.functions.table.derive import Form
from sbpjax._core.tensor.dispatch.dispatch import run
from sbpjax._core.tensor.dispatch.op import op_of
from sbpjax.errors import BoxingError, OpIndexError, OpTypeError

P = flow.placement("cpu", [0, 1])
S, B, PARTIAL = flow.sbp.split, flow.sbp.broadcast, flow.sbp.partial_sum
INTEGERS = "gcd lcm bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift".split()
NEEDED = {
    "p": 1,
    "n": 1,
    "threshold": 0.5,
    "value": 0.5,
    "dim": 0,
    "dims": 0,
    "k": 2,
    "q": 0.5,
    "size": 3,
    "shifts": 1,
    "maxnorm": 1,
}


@functools.cache
def rows():
    """Return a row of every pure op of the table, with its form."""
    found = {row.home: row for row in table.ROWS if not (row.written or row.call)}
    return {home: (row, Form(row, row.resolve())) for home, row in sorted(found.items())}


def with_family(*starts):
    """Return the ops whose text of the family starts in one of these ways."""
    return [
        home for home, (_, form) in rows().items() if texts.family(home, ["x"] * len(form.tensors)).startswith(starts)
    ]


def result(home, sbps, shape=(64, 32), dtype=flow.float32, **given):
    """Return what an op gives for abstract tensors in these layouts, if nothing has to be moved; else None."""
    row, form = rows()[home]
    dtype = flow.int32 if row.name in INTEGERS else dtype
    static = {p.name: p.default for p in form.parameters if p.name in form.attributes}
    static = {name: NEEDED[name] if value is inspect.Parameter.empty else value for name, value in static.items()}
    static.update((name, value) for name, value in given.items() if name in static)
    with flow.abstract():
        inputs = tuple(flow.empty(shape, dtype=dtype, placement=P, sbp=sbp) for sbp in sbps)
    try:
        with flow.boxing_policy("error"):
            out = run(op_of(row.resolve(), tuple(static.items())), inputs)
    except BoxingError:
        return None
    return out[0] if isinstance(out, tuple) else out


def sbp_of(*args, **options):
    found = result(*args, **options)
    return None if found is None else found.sbp[0]


POINTWISE = with_family(texts._ONE[:12], texts._SEVERAL[:12])


@pytest.mark.parametrize("home", POINTWISE)
def test_a_split_stays(home):
    n = len(rows()[home][1].tensors)
    assert sbp_of(home, (S(0),) * n) == S(0)
    assert n == 1 or sbp_of(home, (S(1),) + (B,) * (n - 1)) == S(1)


@pytest.mark.parametrize("home", POINTWISE)
def test_a_partial_sum_stays_where_the_text_says_so(home):
    n = len(rows()[home][1].tensors)
    text = texts.LINEAR.get(home.rpartition(".")[2], texts.REDUCED)
    together, first = sbp_of(home, (PARTIAL,) * n), sbp_of(home, (PARTIAL,) + (B,) * (n - 1))
    if text == "a partial sum stays one":
        assert together == PARTIAL
    elif text == texts.REDUCED:
        assert together is None and first is None
    else:
        assert together is None and first == PARTIAL


REDUCTIONS = with_family(texts.SUM[:10])


@pytest.mark.parametrize("home", REDUCTIONS)
def test_sums(home):
    assert sbp_of(home, (S(0),), dim=0) == PARTIAL
    assert sbp_of(home, (S(1),), dim=0) == S(0) and sbp_of(home, (S(1),), dim=0, keepdim=True) in (S(0), S(1))
    assert sbp_of(home, (PARTIAL,), dim=0) == (None if texts.REDUCED in texts.family(home, ["x"]) else PARTIAL)


@pytest.mark.parametrize("home", with_family(texts.ALONG[:12]))
def test_along_a_dim(home):
    moved = texts.family(home, ["x"]) == texts.MOVED
    n = 2 if home == "shapes.arrange.cat" else 1
    given = {"dim": 0, "dims": (0,)}
    assert sbp_of(home, (S(1),) * n, **given) in (S(0), S(1))
    assert sbp_of(home, (S(0),) * n, **given) in (None, B)  # moved, or reduced by the strategy itself
    assert sbp_of(home, (PARTIAL,) * n, **given) == (PARTIAL if moved else None)


@pytest.mark.parametrize("home", with_family(texts.PRODUCT[:12]))
def test_products(home):
    shape = (4, 32, 32) if home == "linalg.products.bmm" else (32, 32)
    rows_, columns = len(shape) - 2, len(shape) - 1
    for x, y, want in ((S(rows_), B, S(rows_)), (B, S(columns), S(columns)), (S(columns), S(rows_), PARTIAL),
                       (PARTIAL, B, PARTIAL), (B, PARTIAL, PARTIAL)):  # fmt: skip
        assert sbp_of(home, (x, y), shape=shape) == want
    if home == "linalg.products.bmm":
        assert sbp_of(home, (S(0), S(0)), shape=shape) == S(0)


def test_each_family_has_ops():
    known = {home for home in texts._FAMILY_OF if home in rows()}
    written = {
        "reductions.reduce.max",
        "reductions.reduce.min",
        "linalg.products.matmul",
        "reductions.reduce.var",
        "reductions.reduce.std",
    }
    assert texts._FAMILY_OF.keys() - known <= written
    assert len(POINTWISE) > 120 and texts.LINEAR.keys() <= {home.rpartition(".")[2] for home in POINTWISE} | {"add"}


@pytest.mark.parametrize("home", [home for home, (row, _) in rows().items() if texts.makes_floats(row.resolve())])
def test_integers_become_floats(home):
    n = len(rows()[home][1].tensors)
    assert result(home, (B,) * n, shape=(4, 4, 4), dtype=flow.int64).dtype in (flow.float32, flow.complex64)


def failing(helper):
    return [home for home, (row, _) in rows().items() if texts._uses(row.resolve(), helper)]


@pytest.mark.parametrize("home", failing("_check_float_dtype"))
def test_whole_numbers_are_refused(home):
    with pytest.raises(OpTypeError):
        result(home, (B,) * len(rows()[home][1].tensors), dtype=flow.int32)


@pytest.mark.parametrize("home", failing("_not_bool"))
def test_bools_are_refused(home):
    with pytest.raises(OpTypeError):
        result(home, (B,), dtype=flow.bool)


@pytest.mark.parametrize("home", failing("same_dtype"))
def test_different_dtypes_are_refused(home):
    row, form = rows()[home]
    shape = (4,) * (3 if "bmm" in home else 2)
    inputs = [flow.ones(shape), *[flow.ones(shape, dtype=flow.float16) for _ in form.tensors[1:]]]
    static = {"dim": 0, "index": flow.tensor([0])}
    inputs = [static.get(name, x) for name, x in zip(form.tensors, inputs)]
    with pytest.raises(OpTypeError):
        run(op_of(row.resolve(), tuple((a, 0) for a in form.attributes if a == "dim")), tuple(inputs))


@pytest.mark.parametrize("home", sorted({*failing("one"), *failing("several")} & set(with_family(""))))
def test_a_dim_that_is_not_there_is_refused(home):
    form = rows()[home][1]
    if len(form.tensors) == 1 and {"dim", "dims"} & set(form.attributes):
        with pytest.raises(OpIndexError):
            result(home, (B,) * (2 if form.takes_list else 1), dim=9, dims=9 if home == "shapes.arrange.roll" else (9,))


VIEWS = {  # name: the call, and where the dims of a (4, 6, 8) tensor are in the result
    "transpose": (lambda x: x.transpose(0, 1), {0: 1, 1: 0}),
    "permute": (lambda x: x.permute(2, 0, 1), {0: 1, 1: 2, 2: 0}),
    "movedim": (lambda x: x.movedim(0, -1), {0: 2, 1: 0}),
    "flatten": (lambda x: x.flatten(1), {0: 0, 1: 1}),
    "reshape": (lambda x: x.reshape(4, 48), {0: 0, 1: 1}),
    "view": (lambda x: x.view(24, 8), {0: 0, 2: 1}),
    "unsqueeze": (lambda x: x.unsqueeze(0), {0: 1, 2: 3}),
    "squeeze": (lambda x: x.unsqueeze(1).squeeze(), {0: 0, 1: 1}),
    "expand": (lambda x: x.expand(3, 4, 6, 8), {0: 1, 1: 2}),
    "contiguous": (lambda x: x.contiguous(), {0: 0, 2: 2}),
    "narrow": (lambda x: x.narrow(2, 0, 4), {0: 0, 1: 1}),
    "chunk": (lambda x: x.chunk(2, 2)[1], {0: 0, 1: 1}),
    "split": (lambda x: x.split(4, 2)[1], {0: 0, 1: 1}),
    "unbind": (lambda x: x.unbind(2)[3], {0: 0, 1: 1}),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views(name):
    call, places = VIEWS[name]

    def sbp_of_view(sbp):
        with flow.abstract(), flow.boxing_policy("error"):
            return call(flow.empty(4, 6, 8, placement=P, sbp=sbp)).sbp[0]

    assert texts.VIEW[:30] in " ".join(getattr(flow.Tensor, name).__doc__.split()) or name == "contiguous"
    assert {dim: sbp_of_view(S(dim)) for dim in places} == {dim: S(place) for dim, place in places.items()}
    assert sbp_of_view(PARTIAL) == PARTIAL
    if 2 not in places and name in ("narrow", "chunk", "split", "unbind"):
        assert sbp_of_view(S(2)) == PARTIAL


F = flow.nn.functional
IMAGES, KERNELS, TURNED = (8, 4, 16, 16), (6, 4, 3, 3), (4, 6, 3, 3)
# What texts of functions of layers say: the call, shapes and sbps of its tensors, sbp of the result; nothing is moved.
LAYERS = [
    *[(F.conv2d, (IMAGES, KERNELS), *case) for case in ((S(0), B, S(0)), (B, S(0), S(1)), (S(1), S(1), PARTIAL))],
    *[
        (F.conv_transpose2d, (IMAGES, TURNED), *case)
        for case in ((S(0), B, S(0)), (B, S(1), S(1)), (S(1), S(0), PARTIAL))
    ],
    *[(lambda x: F.max_pool2d(x, 2), (IMAGES,), s, s) for s in (S(0), S(1))],
    *[(lambda x: F.avg_pool2d(x, 2), (IMAGES,), s, s) for s in (S(0), S(1), PARTIAL)],
    *[(lambda x: F.adaptive_avg_pool2d(x, 4), (IMAGES,), s, s) for s in (S(0), S(1), PARTIAL)],
    *[(lambda x: F.interpolate(x, scale_factor=2), (IMAGES,), s, s) for s in (S(0), S(1), PARTIAL)],
    *[(lambda x: F.layer_norm(x, (16,)), (IMAGES,), s, s) for s in (S(0), S(1), S(2))],
    *[(F.dropout, (IMAGES,), s, s) for s in (S(0), S(1))],
    *[(f, (IMAGES, IMAGES), S(0), S(0), PARTIAL) for f in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.kl_div)],
    (F.binary_cross_entropy_with_logits, (IMAGES, IMAGES), S(0), S(0), PARTIAL),
    (lambda x, y: F.mse_loss(x, y, reduction="none"), (IMAGES, IMAGES), S(1), S(1), S(1)),
    *[(F.scaled_dot_product_attention, (IMAGES,) * 3, s, s, s, s) for s in (S(0), S(1))],
    *[(lambda x: F.pixel_shuffle(x, 2), (IMAGES,), s, s) for s in (S(0), PARTIAL)],
    *[(lambda x: F.unfold(x, 2), (IMAGES,), s, s) for s in (S(0), S(1), PARTIAL)],
    *[(lambda x: F.group_norm(x, 2), (IMAGES,), s, s) for s in (S(0), S(1))],
    (lambda x: F.normalize(x, dim=1), (IMAGES,), S(2), S(2)),
]


@pytest.mark.parametrize("case", range(len(LAYERS)))
def test_functions_of_layers(case):
    call, shapes, *sbps, want = LAYERS[case]
    with flow.abstract(), flow.boxing_policy("error"):
        assert call(*[flow.empty(shape, placement=P, sbp=s) for shape, s in zip(shapes, sbps)]).sbp[0] == want
