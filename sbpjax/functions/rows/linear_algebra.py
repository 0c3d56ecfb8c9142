"""Norms, decompositions, equations: the names of ``torch.linalg``, and PyTorch's older ones at the top.

Matrices are the last two dims, whole on every rank; batch dims of a global tensor may be split.
"""

from __future__ import annotations

from ..table import FN, METHOD, op, written

LINEAR_ALGEBRA = "sbpjax.functions.linear_algebra"
OLDER = "sbpjax.functions.older_linear_algebra"
READ = FN | METHOD
NUMPY = {"axis": "dim", "keepdims": "keepdim"}
EIGEN = "eigenvalues eigenvectors"

written("linalg.norm", LINEAR_ALGEBRA, names=NUMPY, oneflow="self=A ord dim keepdim dtype")
written("linalg.vector_norm", LINEAR_ALGEBRA, names=NUMPY, oneflow="self=x ord dim keepdim dtype")
op("linalg.matrix_norm(A, ord='fro', dim=(-2, -1), keepdim=False, *, dtype=None)", "matrix_norm.matrix_norm",
   oneflow="self=A ord dim keepdim dtype")  # fmt: skip
op("linalg.cond(A, p=None)", "matrix_norm.cond")
op("linalg.svd(A, full_matrices=True, *, driver=None)", "decompose.svd", ignores="driver", result="U S Vh")
op("linalg.svdvals(A, *, driver=None)", "decompose.svdvals", ignores="driver")
op("linalg.qr(A, mode='reduced')", "decompose.qr", result="Q R")
op("linalg.eigh(A, UPLO='L')", "decompose.eigh", result=EIGEN)
op("linalg.eigvalsh(A, UPLO='L')", "decompose.eigvalsh")
op("linalg.eig(A)", "decompose.eig", result=EIGEN)
op("linalg.eigvals(A)", "decompose.eigvals")
op("linalg.lu(A, *, pivot=True)", "decompose.lu", result="P L U")
op("linalg.slogdet(A)", "decompose.slogdet", also=".slogdet Tensor.slogdet", result="sign logabsdet")
op("linalg.det(A)", "decompose.det")
op("linalg.matrix_exp(A)", "decompose.matrix_exp")
op("linalg.householder_product(A, tau)", "decompose.householder_product")
written("linalg.cholesky_ex linalg.cholesky linalg.lu_factor_ex linalg.lu_factor", LINEAR_ALGEBRA)
written("linalg.ldl_factor_ex linalg.ldl_factor", LINEAR_ALGEBRA)
op("linalg.ldl_solve(LD, pivots, B, *, hermitian=False)", "ldl.ldl_solve")
op("linalg.lu_solve(LU, pivots, B, left=True, adjoint=False)", "solve.lu_solve")
written("linalg.solve_ex linalg.solve linalg.inv_ex linalg.lstsq linalg.matrix_rank", LINEAR_ALGEBRA)
written("linalg.inv", LINEAR_ALGEBRA, also=".inverse Tensor.inverse")
written("linalg.pinv", LINEAR_ALGEBRA, also=".pinverse Tensor.pinverse")
op("linalg.solve_triangular(A, B, *, upper, left=True, unitriangular=False)", "solve.solve_triangular", strict=True)
op("linalg.tensorsolve(A, B, dims=None)", "solve.tensorsolve")
op("linalg.tensorinv(A, ind=2)", "solve.tensorinv")
op("linalg.matrix_power(A, n)", "solve.matrix_power")
op("linalg.multi_dot(tensors)", "solve.multi_dot")
op("linalg.vander(x, N=None, increasing=True)", "solve.vander")
op("linalg.cross(input, other, *, dim=-1)", "matrix.cross", oneflow="input other dim")
written("linalg.vecdot", LINEAR_ALGEBRA, out=True)
written("linalg.diagonal", LINEAR_ALGEBRA, oneflow="input=A offset dim1 dim2")

op("det(input)", "decompose.det", READ)
op("logdet(input)", "decompose.logdet", READ)
op("matrix_exp(input)", "decompose.matrix_exp", READ)
op("matrix_power(input, n)", "solve.matrix_power", READ)
op("cholesky_solve(input, input2, upper=False)", "decompose.cholesky_solve", READ)
op("cholesky_inverse(L, upper=False)", "decompose.cholesky_inverse", READ)
op("orgqr(input, input2)", "decompose.householder_product", READ)
op("lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True)", "decompose.lu_unpack", result="P L U")
op("chain_matmul(*matrices)", "solve.multi_dot")
op("vander(x, N=None, increasing=False)", "solve.vander", out=False)
written("cholesky qr svd lu lu_solve", OLDER, READ)
written("triangular_solve", OLDER, READ, strict=True)
