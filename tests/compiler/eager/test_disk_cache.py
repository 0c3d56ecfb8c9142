"""Programs kept on disk: found again, only where they may be, and never trusted when they are not whole."""

import hashlib
import importlib
import os
import pickle
import subprocess
import sys
import textwrap

import jax
import numpy as np
import pytest

import sbpjax as flow
from sbpjax._core.compiler import conversions
from sbpjax._core.compiler.eager import disk_cache, global_ops
from sbpjax._core.ops.arithmetic import mul
from sbpjax._core.ops.elementwise import exp
from sbpjax._core.runtime.lru_cache import LRUCache
from sbpjax._core.serialization import signing
from sbpjax._core.tensor.creation import host_constants
from sbpjax._core.tensor.dispatch import op as ops
from sbpjax._core.tensor.dispatch import placed
from sbpjax.sbp import placement
from sbpjax.sbp.policy import boxing_policy

PLACE = placement("cpu", [0, 1, 2, 3])


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Return an empty directory of programs; `forget` there makes this process a new one."""
    monkeypatch.setenv("SBPJAX_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("SBPJAX_PROGRAM_CACHE", raising=False)
    monkeypatch.setattr(disk_cache, "_lookups", 0)
    monkeypatch.setattr(global_ops, "_PROGRAMS", LRUCache(100))
    monkeypatch.setattr(ops, "_KEPT", LRUCache(100))
    return tmp_path / "eager"


def forget():
    global_ops._PROGRAMS.clear()
    ops._KEPT.clear()


def scaled(factor, sbp="S0"):
    x, layout = conversions.from_logical(np.arange(8, dtype=np.float32), PLACE, sbp)
    arrays, layouts = global_ops.execute(mul, (), (x, factor), (layout, None))
    return conversions.to_logical(arrays[0], layouts[0]), layouts[0]


def test_a_kept_program_is_neither_traced_nor_lowered(cache, compilations):
    first, layout = scaled(2.0)
    assert len(list(cache.iterdir())) == 2  # the product, and the boxing of `to_logical`
    forget()
    with compilations as count:
        again, found = scaled(3.0)
    assert count.count == 0 and found is layout
    np.testing.assert_array_equal(first, 2 * np.arange(8))
    np.testing.assert_array_equal(again, 3 * np.arange(8))


def test_its_plan_is_made_when_asked_for(cache):
    x, layout = conversions.from_logical(np.ones(8, np.float32), PLACE, "P")
    global_ops.execute(global_ops.identity, (), (x,), (layout,), out_sbps=("B",))
    forget()
    with boxing_policy("warn"), pytest.warns(flow.errors.BoxingWarning, match="P"):
        global_ops.execute(global_ops.identity, (), (x,), (layout,), out_sbps=("B",))


@pytest.mark.parametrize("change", ["type of a number", "layout", "pin", "attribute", "setting"])
def test_what_changes_the_program_changes_the_key(cache, change):
    x, layout = conversions.from_logical(np.ones((8, 8), np.float32), PLACE, "S0")
    given = {"fn": mul, "static": (), "arrays": (x, 2.0), "layouts": (layout, None), "out_sbps": None}
    y, other = conversions.from_logical(np.ones((8, 8), np.float32), PLACE, "S1")
    changed = {
        "type of a number": {"arrays": (x, 2)},
        "layout": {"arrays": (y, 2.0), "layouts": (other, None)},
        "pin": {"out_sbps": ("B",)},
        "attribute": {"static": (("alpha", 2),)},
        "setting": {},
    }[change]

    def key(fn, static, arrays, layouts, out_sbps):
        return global_ops._key_on_disk(fn, static, arrays, layouts, PLACE, out_sbps, ())

    assert key(**given) == key(**given) is not None
    with jax.default_matmul_precision("float32" if change == "setting" else None):
        found = key(**given | changed)
    assert found not in (None, key(**given))


def test_a_function_without_a_name_is_not_kept(cache):
    x, layout = conversions.from_logical(np.ones(8, np.float32), PLACE, "S0")
    (array,), _ = global_ops.execute(lambda x: x + 1, (), (x,), (layout,))
    assert not cache.exists() and float(array.sum()) == 16


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-7], lambda data: b"", lambda data: data[:40] + b"x" + data[41:]]
)
def test_a_damaged_file_is_replaced(cache, damage, compilations):
    scaled(2.0)
    whole = {path: path.read_bytes() for path in cache.iterdir()}
    for path, data in whole.items():
        path.write_bytes(damage(data))
    forget()
    with compilations as count:
        assert scaled(2.0)[0].tolist() == [0, 2, 4, 6, 8, 10, 12, 14]
    assert count.count == 2
    forget()
    with compilations as count:
        scaled(2.0)
    assert count.count == 0


class Evil:
    def __reduce__(self):
        return RAN.append, ("a stranger's code",)


RAN = []


@pytest.mark.parametrize("forge", [
    lambda name, body: body,
    lambda name, body: hashlib.sha256(body).digest() + body,  # a digest needs no key
    lambda name, body: signing.sign(b"s" * 32, f"eager/{name}", body),
    lambda name, body: signing.sign(signing.private_key(), f"plans/{name}", body),  # signed, for another place
    lambda name, body: signing.sign(signing.private_key(), f"eager/{name}", b"")[:32] + body,
], ids=["plain", "a digest", "another key", "another place", "another body"])  # fmt: skip
def test_a_rewritten_file_runs_nothing(cache, forge, compilations):
    first = scaled(2.0)[0]
    for path in cache.iterdir():
        path.write_bytes(forge(path.name, pickle.dumps(Evil())))
    forget()
    with compilations as count:
        np.testing.assert_array_equal(scaled(2.0)[0], first)
    assert count.count == 2 and RAN == []
    forget()
    with compilations as count:  # replaced by files of this user's
        scaled(2.0)
    assert count.count == 0


def test_files_that_are_swapped_are_not_taken_for_each_other(cache, compilations):
    first = scaled(2.0)[0]
    (one, two), bodies = cache.iterdir(), [path.read_bytes() for path in cache.iterdir()]
    one.write_bytes(bodies[1])
    two.write_bytes(bodies[0])
    forget()
    with compilations as count:
        np.testing.assert_array_equal(scaled(2.0)[0], first)
    assert count.count == 2


def test_a_program_that_does_not_take_its_input_is_made_anew(cache):
    x, layout = conversions.from_logical(np.ones(8, np.float32), PLACE, "S0")
    global_ops.execute(exp, (), (x,), (layout,))
    elsewhere = jax.device_put(np.ones(8, np.float32), jax.devices()[5])
    with pytest.raises(ValueError, match="devices"):  # as `jax.jit` says it, not the kept program
        global_ops.execute(exp, (), (elsewhere,), (layout,))
    (array,), _ = global_ops.execute(exp, (), (x,), (layout,))
    np.testing.assert_allclose(array, np.full(8, np.e, np.float32), rtol=1e-6)


def test_backward_and_update_of_a_model_start_without_a_trace(cache, compilations):
    def step():
        flow.manual_seed(3)
        model = flow.nn.Sequential(flow.nn.Linear(4, 8), flow.nn.GELU(), flow.nn.Linear(8, 2))
        model.to_global(PLACE, flow.sbp.broadcast)
        optimizer = flow.optim.Adam(model.parameters(), lr=0.1)
        x = flow.ones(8, 4, placement=PLACE, sbp=flow.sbp.split(0))
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return [p.numpy() for p in model.parameters()]

    host_constants._made.clear()
    first = step()
    forget()
    placed._chosen.clear()
    host_constants._made.clear()
    for op in ops._OPS.everything():
        op.entries.clear()
    with compilations as count:
        again = step()
    assert count.count == 0
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)


def test_creation_inside_a_program_is_a_part_of_it(cache):
    step = flow.compile(lambda x: x + flow.ones(4))
    with flow.abstract():
        assert "broadcast" in step.lower(flow.zeros(4)).as_text()
    assert not cache.exists()


def test_only_the_start_is_kept(cache, monkeypatch):
    monkeypatch.setattr(disk_cache, "_lookups", disk_cache._MOST_PER_PROCESS)
    scaled(2.0)
    assert not cache.exists()


def test_another_process_finds_the_same_key(cache, monkeypatch):
    code = """
        from sbpjax._core.ops.layers.activation import gelu
        from sbpjax.sbp import Layout, placement; from sbpjax._core.compiler.eager import disk_cache
        from sbpjax._core.tensor.dispatch.op import op_of
        place = placement("cpu", [0, 1, 2, 3])
        op = op_of(gelu, (("approximate", "none"),))
        layout = Layout(place, "S0", (8, 4), "float32")
        disk_cache._surroundings = lambda: "the sources, which somebody may be editing"
        print(disk_cache.key_of("op", op.traced, (), (layout, "float"), place, (place and layout.sbp, None), (0,)))
    """
    code = textwrap.dedent(code)
    importlib.import_module("jax.experimental.pallas.fuser")  # adds to JAX's settings, here and not there
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=200)
    here: dict = {}
    monkeypatch.setattr(disk_cache, "_hash_environment", disk_cache._hash_environment)  # to be put back
    exec(code.replace("print(", "found = ("), here)
    assert done.stdout.strip() == here["found"] != "None"


# A batch of symmetric matrices over four ranks, whole on each, and on one device. Every op that reaches LAPACK.
_LAPACK = """
    import jax, numpy as np
    import sbpjax as flow
    from sbpjax._core.compiler.eager import disk_cache

    hits = []
    load = disk_cache.load
    disk_cache.load = lambda key: hits.append(load(key)) or hits[-1]
    a = np.random.default_rng(0).standard_normal((4, 5, 5))
    a = (a @ a.swapaxes(-1, -2) + 5 * np.eye(5)).astype(np.float32)
    b = a[..., :2] + np.eye(5, 2, dtype=np.float32)
    diagonal = lambda v: v[..., None] * np.eye(5)
    place = flow.placement("cpu", [[0, 1], [2, 3]])
    near = lambda got, wanted: np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-3)
    for sbp in (["S0", "B"], ["B", "B"]):
        x, y = (flow.tensor(v).to_global(place, sbp) for v in (a, b))
        call = lambda name, *more, **options: [
            t.numpy() for t in (lambda r: r if isinstance(r, tuple) else (r,))(
                getattr(flow.linalg, name)(x, *more, **options))
        ]
        p, l, u = call("lu")
        near(p @ l @ u, a)
        compact, pivots = call("lu_factor")
        near(np.triu(compact), u)
        q, r = call("qr")
        near(q @ r, a)
        u, s, vh = call("svd")
        near(u @ diagonal(s) @ vh, a)
        w, v = call("eigh")
        near(v @ diagonal(w) @ v.swapaxes(-1, -2), a)
        w, v = call("eig")
        near(v @ diagonal(w) @ np.linalg.inv(v), a)
        near(np.sort(call("eigvals")[0].real), np.sort(w.real))
        near(call("eigvalsh")[0], np.sort(w.real))
        near(call("cholesky")[0], np.linalg.cholesky(a))
        near(call("solve", y)[0], np.linalg.solve(a, b))
        near(call("solve_triangular", y, upper=True)[0], np.linalg.solve(np.triu(a), b))
        near(call("lstsq", y)[0], np.linalg.solve(a, b))
        near(call("inv")[0], np.linalg.inv(a))
        near(call("pinv")[0], np.linalg.inv(a))
        near(call("slogdet")[1], np.linalg.slogdet(a)[1])
    found = [h is not None for h in hits]
    print(sum(found), len(found))
"""


def test_a_program_that_calls_lapack_runs_in_the_next_process(tmp_path):
    # JAX finds SciPy's functions when it first lowers such a program; one from disk called null pointers.
    environment = os.environ | {"SBPJAX_CACHE_DIR": str(tmp_path), "SBPJAX_PROGRAM_CACHE": "on"}
    code = textwrap.dedent(_LAPACK)
    counts = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=environment
        )
        assert done.returncode == 0, done.stderr[-2000:]
        counts.append([int(n) for n in done.stdout.split()])
    found, again = counts[1]
    assert found == again > 30, counts
