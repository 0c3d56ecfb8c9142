"""Op table: matrix products. A split contracted dim gives a partial sum, other splits split the result."""

from __future__ import annotations

from ..table.op_modules import matrix, place, products
from ..table.table import FN, INPLACE, INPLACE_FN, METHOD, custom, op

FUNCTIONS = "sbpjax._core.functions.elementwise"
READ = FN | METHOD
WRITE = READ | INPLACE

custom("matmul", FUNCTIONS, READ, also="_C.matmul linalg.matmul", amp="lower")
op("mm(input, mat2)", products.mm, READ, amp="lower", exact_out=True)
op("bmm(input, mat2, transpose_a=False, transpose_b=False, alpha=1.0)", products.bmm, READ, amp="lower",
   names={"a": "input", "b": "mat2"})  # fmt: skip
op("mv(input, vec)", products.mv, READ, amp="accelerator:lower")
op("dot(input, other)", products.dot, READ, names={"tensor": "other"}, amp="accelerator:widest")
op("outer(input, vec2)", products.outer, READ, also="ger")
op("inner(input, other)", products.inner, READ)
op("kron(input, other)", products.kron, READ)
op(
    "addmm(input, mat1, mat2, beta=1, alpha=1)",
    products.addmm,
    WRITE,
    oneflow="input mat1 mat2 alpha beta",
    amp="lower",
)
op("baddbmm(input, batch1, batch2, beta=1, alpha=1)", products.baddbmm, WRITE, also="_C.baddbmm", amp="lower")
op("addbmm(input, batch1, batch2, beta=1, alpha=1)", products.addbmm, READ, amp="lower")
custom("Tensor.addbmm_", FUNCTIONS)
op("addmv(input, mat, vec, beta=1, alpha=1)", products.addmv, WRITE | INPLACE_FN, amp="accelerator:lower")
op("addr(input, vec1, vec2, beta=1, alpha=1)", products.addr, WRITE, amp="cpu:widest accelerator:lower")
custom("tensordot", FUNCTIONS, amp="cpu:lower accelerator:widest")
custom("einsum", FUNCTIONS, amp="lower")
custom("cross", FUNCTIONS, READ, out=True, amp="accelerator:widest")
op("vdot(input, other)", place.vdot, READ)
op("tril(input, diagonal=0)", matrix.tril, WRITE)
op("triu(input, diagonal=0)", matrix.triu, WRITE)
op("trace(input)", matrix.trace, READ, amp="cpu:float32")
op("diag(input, diagonal=0)", matrix.diag, READ)
op("diag_embed(input, offset=0, dim1=-2, dim2=-1)", matrix.diag_embed, READ)
