"""What a program from a file may call: linear algebra as JAX calls it, and nothing else without a signature."""

import hashlib
import json
import secrets

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.mlir import ir
from jax.lax import linalg

import sbpjax as flow
from sbpjax.errors import ExportError, SignatureError
from sbpjax.graph.export import file_reader
from sbpjax.graph.export.custom_calls import callbacks, parse_program, unsafe_operations
from tests.support import graphs

N = 30
X = jax.ShapeDtypeStruct((N, N), jnp.float32)


def like(*shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


def call(target, results, operands=None, **options):
    """Return a program that calls a native function with these results."""

    def program(x):
        given = [x] if operands is None else [jnp.zeros(s.shape, s.dtype) for s in operands]
        columns = [tuple(range(a.ndim)) for a in given]
        outs = jax.ffi.ffi_call(
            target, results, input_layouts=columns, output_layouts=[tuple(range(r.ndim)) for r in results]
        )(*given, **options)  # fmt: skip
        return x + sum(jnp.sum(o).real.astype(x.dtype) for o in outs)

    return program


def serialised(fn, *avals, platforms=("cpu",), unchecked=()):
    checks = [jax.export.DisabledSafetyCheck.custom_call(name) for name in unchecked]
    return jax.export.export(jax.jit(fn), platforms=platforms, disabled_checks=checks)(*avals)


def letter(text):
    return np.uint8(ord(text))


I32, SCALAR = jnp.int32, like(dtype=jnp.int32)
CRAFTED = {
    "pivots in one element": call("lapack_sgetrf_ffi", [X, like(1, dtype=I32), SCALAR]),
    "pivots in three dims": call("lapack_sgetrf_ffi", [X, like(N, 1, 1, dtype=I32), SCALAR]),
    "pivots as bytes": call("lapack_sgetrf_ffi", [X, like(N, dtype=jnp.int8), SCALAR]),
    "a result of one element": call("lapack_spotrf_ffi", [like(1, 1), SCALAR], uplo=letter("L")),
    "a batch of fewer": call(
        "lapack_spotrf_ffi", [like(3, N, N), like(3, dtype=I32)], operands=[like(2, N, N)], uplo=letter("L")
    ),
    "doubles of floats": call("lapack_dgetrf_ffi", [X, like(N, dtype=I32), SCALAR]),
    "few eigenvalues": call("lapack_ssyevd_ffi", [X, like(2), SCALAR], mode=letter("V"), uplo=letter("L")),
    "a mode of its own": call("lapack_ssyevd_ffi", [X, like(N), SCALAR], mode=letter("Q"), uplo=letter("L")),
    "full vectors in thin buffers": call(
        "lapack_sgesdd_ffi", [like(N, 4), like(4), like(N, 4), like(4, 4), SCALAR], operands=[like(N, 4)],
        mode=letter("A"),
    ),
    "no mode": call("lapack_sgesdd_ffi", [X, like(N), X, X, SCALAR]),
    "rows beyond the matrix": call(
        "lapack_sgehrd_ffi", [X, like(N - 1), SCALAR], low=np.int32(1), high=np.int32(10**6)
    ),
    "rows before the matrix": call(
        "lapack_sgehrd_ffi", [X, like(N - 1), SCALAR], low=np.int32(-(10**6)), high=np.int32(N)
    ),
    "more reflectors than columns": call("lapack_sorgqr_ffi", [like(N, 2)], operands=[like(N, 2), like(N)]),
    "a triangle of another size": call(
        "lapack_strsm_ffi", [X], operands=[like(2, 2), X], side=letter("L"), uplo=letter("L"), trans_x=letter("N"),
        diag=letter("N"),
    ),
    "a side of its own": call(
        "lapack_strsm_ffi", [X], operands=[X, X], side=letter("X"), uplo=letter("L"), trans_x=letter("N"),
        diag=letter("N"),
    ),
    "a function that selects": call(
        "lapack_sgees_ffi", [X, X, like(N), like(N), SCALAR, SCALAR], mode=letter("V"), sort=letter("S")
    ),
    "an operand too few": call("lapack_sgtsv_ffi", [like(N), like(N), like(N), X, SCALAR]),
    "an older name": call("blas_strsm", [X]),
    "memory as it is": call("AllocateBuffer", [X]),
    "a kernel with its code": call("mosaic_gpu_v2", [X]),
    "a kernel for TPU": call("tpu_custom_call", [X]),
    "a kernel of Triton": call("__gpu$xla.gpu.triton", [X]),
    "a kernel of cuDNN": call("__cudnn$fmhaSoftmax", [X]),
    "whatever is registered": call("my_library_call", [X]),
}  # fmt: skip
UNCHECKED = (
    "blas_strsm", "AllocateBuffer", "mosaic_gpu_v2", "tpu_custom_call", "__gpu$xla.gpu.triton", "__cudnn$fmhaSoftmax",
    "my_library_call", "xla_ffi_python_cpu_callback", "xla_python_gpu_callback", "CustomSPMDPartitioning",
)  # fmt: skip
CALLBACKS = ["xla_ffi_python_cpu_callback", "xla_python_gpu_callback", "CustomSPMDPartitioning"]


@pytest.mark.parametrize("name", CRAFTED)
def test_calls_that_would_leave_their_buffers_are_found(name):
    module = parse_program(serialised(CRAFTED[name], X, unchecked=UNCHECKED).mlir_module_serialized)
    assert len(unsafe_operations(module)) == 1 and callbacks(module) == []


def test_what_talks_to_the_host_is_found():
    out = '"stablehlo.outfeed"(%t) : (!stablehlo.token) -> !stablehlo.token'
    text = f"func.func public @main(%t: !stablehlo.token) {{ {out} func.return }}"
    with parse_program(serialised(jnp.sin, X).mlir_module_serialized).context:
        module = ir.Module.parse(text)
    assert unsafe_operations(module) == ["stablehlo.outfeed: it talks to the host"]


def test_memory_that_an_operand_and_a_smaller_result_share_is_refused():
    module = parse_program(serialised(linalg.lu, X).mlir_module_serialized)
    text = str(module).replace(
        "output_tuple_indices = [0], operand_index = 0", "output_tuple_indices = [1], operand_index = 0"
    )
    assert text != str(module)
    with module.context, pytest.raises(ir.MLIRError):  # StableHLO's own rule: the table needs none
        ir.Module.parse(text)


LINEAR = {
    "lu": (linalg.lu, (7, 4)),
    "wide lu": (linalg.lu, (4, 7)),
    "cholesky": (linalg.cholesky, (5, 5)),
    "eigh": (linalg.eigh, (5, 5)),
    "svd": (lambda x: linalg.svd(x, full_matrices=False), (7, 4)),
    "full svd": (lambda x: linalg.svd(x, full_matrices=True), (4, 7)),
    "singular values": (lambda x: linalg.svd(x, compute_uv=False), (7, 4)),
    "qr": (lambda x: linalg.qr(x, full_matrices=False), (7, 4)),
    "full qr": (lambda x: linalg.qr(x, full_matrices=True), (7, 4)),
    "solve": (lambda x: linalg.triangular_solve(x[..., :5, :], x, left_side=False, lower=True), (7, 5)),
    "solve left": (lambda x: linalg.triangular_solve(x, x[..., :2], left_side=True, lower=True), (5, 5)),
    "eig": (linalg.eig, (5, 5)),
    "schur": (linalg.schur, (5, 5)),
    "hessenberg": (linalg.hessenberg, (5, 5)),
    "tridiagonal": (lambda x: linalg.tridiagonal(x, lower=True), (5, 5)),
    "tridiagonal solve": (lambda x: linalg.tridiagonal_solve(x[..., 0], x[..., 1], x[..., 2], x), (5, 5)),
}
OTHER_PLATFORMS = {"cuda": {"eig", "schur", "hessenberg"}, "tpu": {"eig", "schur", "hessenberg", "tridiagonal"}}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_algebra_as_jax_calls_it_is_allowed(name):
    fn, shape = LINEAR[name]
    for dtype in (jnp.float32, jnp.complex64):
        for batch in ((), (3,), (2, 3)):
            exported = serialised(fn, jax.ShapeDtypeStruct((*batch, *shape), dtype))
            assert unsafe_operations(parse_program(exported.mlir_module_serialized)) == []
    for platform, lacking in OTHER_PLATFORMS.items():
        if name not in lacking:
            exported = serialised(fn, jax.ShapeDtypeStruct((3, *shape), jnp.float32), platforms=(platform,))
            assert unsafe_operations(parse_program(exported.mlir_module_serialized)) == []


# -- whole exports -----------------------------------------------------------------------------------------------------


def with_a_custom_call():
    """Return a graph whose program calls LAPACK."""
    model = flow.nn.Linear(N, N)
    return graphs.graph_of(lambda model, x: model(x) @ flow.linalg.cholesky(x @ x.T + flow.eye(N)), model)


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    folder, key = tmp_path_factory.mktemp("exports"), secrets.token_bytes(32)
    graph, x = with_a_custom_call(), flow.randn(N, N)
    graph.export(folder / "g", x, key=key)
    return folder / "g", key, x, graph(x).numpy()


@pytest.fixture
def export(exports, tmp_path):
    folder = tmp_path / "g"
    folder.mkdir()
    for file in exports[0].iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def exchanged(folder, fn):
    """Put another program into an export, with the digest that belongs to it."""
    found = json.loads((folder / "manifest.json").read_text())
    old = jax.export.deserialize(bytearray((folder / "program.jax_export").read_bytes()))
    avals = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in old.in_avals]
    made = bytes(serialised(fn, *avals, unchecked=UNCHECKED).serialize())
    (folder / "program.jax_export").write_bytes(made)
    found["program"]["sha256"] = hashlib.sha256(made).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(found))


def evil(target, *results, **options):
    def program(*args):
        return (call(target, list(results), **options)(next(a for a in args if a.shape == (N, N))),)

    return program


def test_an_unsigned_export_with_a_crafted_call_is_refused(export):
    exchanged(export, evil("lapack_sgetrf_ffi", X, like(1, dtype=I32), SCALAR))
    with pytest.raises(ExportError, match=r"(?s)i32\[1\] where i32\[30\] is written.*fix: .*key=.*trust=True"):
        flow.load_graph(export)


@pytest.mark.parametrize("target", CALLBACKS)
def test_a_call_back_into_python_is_always_refused(target, export):
    exchanged(export, evil(target, X))
    for word in ({}, {"trust": True}):
        with pytest.raises(ExportError, match=rf"(?s){target}.*object of the process"):
            flow.load_graph(export, **word)


def test_what_the_user_trusts_is_loaded(export):
    exchanged(export, evil("mosaic_gpu_v2", X))
    with pytest.raises(ExportError, match="mosaic_gpu_v2: not in the table"):
        flow.load_graph(export)
    assert "mosaic_gpu_v2" in flow.load_graph(export, trust=True).stablehlo()


def test_a_signed_export_is_loaded_by_its_key(exports):
    folder, key, x, wanted = exports
    np.testing.assert_array_equal(flow.load_graph(folder, key=key)(x).numpy(), wanted)
    np.testing.assert_array_equal(flow.load_graph(folder)(x).numpy(), wanted)


@pytest.mark.parametrize("what", ["another key", "no signature", "short", "manifest", "program", "weights", "no bytes"])
def test_a_signature_that_does_not_fit(what, exports, export):
    key = {"another key": bytes(32), "no bytes": b"short"}.get(what, exports[1])
    error, words = SignatureError, "signature"
    if what == "no signature":
        (export / "manifest.sig").unlink()
        words = r"no manifest.sig"
    elif what == "short":
        (export / "manifest.sig").write_bytes(b"")
    elif what == "manifest":
        text = (export / "manifest.json").read_text()
        (export / "manifest.json").write_text(text.replace('"random": false', '"random": true '))
        assert (export / "manifest.json").read_text() != text
    elif what == "program":
        exchanged(export, evil("mosaic_gpu_v2", X))
    elif what == "weights":
        data = bytearray((export / "weights.safetensors").read_bytes())
        data[-1] ^= 1
        (export / "weights.safetensors").write_bytes(data)
        error, words = ExportError, "not that which manifest.json was written with"
    elif what == "no bytes":
        words = "key= of 5 bytes"
    with pytest.raises(error, match=words):
        flow.load_graph(export, key=key)


@pytest.mark.parametrize(
    ("script", "expected"),
    [("import os; os.abort()", "ended with code"), ("while True: pass", "more than 1 s")],
)
def test_a_program_that_ends_or_stops_the_parser(script, expected, export, monkeypatch):
    """A mutated program stopped MLIR's parser for good; here the process that parses first does so at once."""
    monkeypatch.setattr(file_reader, "_PARSE", script)
    monkeypatch.setattr(file_reader, "_PARSE_SECONDS", 1)
    with pytest.raises(ExportError, match=f"(?s)a program that cannot be read: .*{expected}"):
        flow.load_graph(export)


def test_a_weight_that_changed_is_no_value(export):
    data = bytearray((export / "weights.safetensors").read_bytes())
    data[-2] ^= 64
    (export / "weights.safetensors").write_bytes(data)
    with pytest.raises(ExportError, match=r"weights.safetensors, not that which"):
        flow.load_graph(export)


def test_a_free_batch_of_matrices_needs_a_signature(tmp_path):
    key = secrets.token_bytes(16)
    graphs.graph_of(flow.linalg.cholesky).export(tmp_path / "g", flow.eye(3)[None], dynamic_batch=True, key=key)
    with pytest.raises(ExportError, match="on a free batch"):
        flow.load_graph(tmp_path / "g")
    found = flow.load_graph(tmp_path / "g", key=key)(flow.stack([flow.eye(3), 4 * flow.eye(3)]))
    np.testing.assert_array_equal(found.numpy(), np.stack([np.eye(3), 2 * np.eye(3)]))


def test_a_key_that_protects_nothing_is_refused(tmp_path):
    with pytest.raises(SignatureError, match="at least 16 bytes"):
        with_a_custom_call().export(tmp_path / "g", flow.ones(N, N), key=b"")
    assert not list(tmp_path.iterdir())
