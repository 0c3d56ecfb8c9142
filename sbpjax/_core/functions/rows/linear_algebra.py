"""Op table: linear algebra (norms, decompositions, solves of ``torch.linalg``, and PyTorch's older names).

Matrices are the last two dims, whole on every rank; batch dims of a global tensor may be split.
"""

from __future__ import annotations

from ..table.op_modules import decompose, ldl, matrix, matrix_norm, solve
from ..table.table import FN, METHOD, alias, custom, op

LINEAR_ALGEBRA = "sbpjax._core.functions.linear_algebra.norms"
READ = FN | METHOD
NUMPY = {"axis": "dim", "keepdims": "keepdim"}
FAILS = "\n\nRaises:\n    LinAlgError: a matrix has none; on the CPU and outside compiled programs."
EIGEN = "eigenvalues eigenvectors"

custom("linalg.norm", LINEAR_ALGEBRA, names=NUMPY, out=True, oneflow="self=A ord dim keepdim dtype")
custom(
    "linalg.vector_norm",
    LINEAR_ALGEBRA,
    also="_C.vector_norm",
    names=NUMPY,
    out=True,
    oneflow="self=x ord dim keepdim dtype",
)
op("linalg.matrix_norm(A, ord='fro', dim=(-2, -1), keepdim=False, *, dtype=None)", matrix_norm.matrix_norm,
   also="_C.matrix_norm", check="check_matrix_norm", oneflow="self=A ord dim keepdim dtype")  # fmt: skip
op("linalg.cond(A, p=None)", matrix_norm.cond, check="check_condition_number")
op("linalg.svd(A, full_matrices=True, *, driver=None)", decompose.svd, ignores="driver", result="U S Vh",
   check="check_matrices_without_nan")  # fmt: skip
op("linalg.svdvals(A, *, driver=None)", decompose.svdvals, ignores="driver",
   check="check_matrices_without_nan")  # fmt: skip
op("linalg.qr(A, mode='reduced')", decompose.qr, result="Q R")
op("linalg.eigh(A, UPLO='L')", decompose.eigh, result=EIGEN)
op("linalg.eigvalsh(A, UPLO='L')", decompose.eigvalsh)
op("linalg.eig(A)", decompose.eig, result=EIGEN, check="check_finite_matrices")
op("linalg.eigvals(A)", decompose.eigvals, check="check_finite_matrices")
op("linalg.lu(A, *, pivot=True)", decompose.lu, result="P L U")
op("linalg.slogdet(A)", decompose.slogdet, also=".slogdet Tensor.slogdet", result="sign logabsdet")
op("linalg.det(A)", decompose.det)
op("linalg.matrix_exp(A)", decompose.matrix_exp)
op("linalg.householder_product(A, tau)", decompose.householder_product)
op("linalg.cholesky_ex(A, *, upper=False, check_errors: bool = False)", decompose.cholesky_ex, result="L info",
   fails="raise_not_positive_definite")  # fmt: skip
op("linalg.cholesky(A, *, upper=False)", decompose.cholesky_ex, fails="raise_not_positive_definite",
   text="Return the lower (or upper) Cholesky factor of Hermitian positive definite matrices." + FAILS)  # fmt: skip
op("linalg.lu_factor_ex(A, *, pivot: bool = True, check_errors: bool = False)", decompose.lu_factor,
   result="LU pivots info", ignores="pivot", check="check_pivoting", fails="raise_singular_u")  # fmt: skip
op("linalg.lu_factor(A, *, pivot: bool = True)", decompose.lu_factor, result="LU pivots", ignores="pivot",
   check="check_pivoting", fails="raise_singular_u",
   text="Return L and U in one matrix, and the pivots counted from 1." + FAILS)  # fmt: skip
op("linalg.ldl_factor_ex(A, *, hermitian=False, check_errors: bool = False)", ldl.ldl_factor_ex,
   result="LD pivots info", fails="raise_singular_d")  # fmt: skip
op("linalg.ldl_factor(A, *, hermitian=False)", ldl.ldl_factor_ex, result="LD pivots", fails="raise_singular_d",
   text="Return L and D of ``A = L D L^T`` in one matrix, and the pivots: negative for a block of two, from 1."
   + FAILS)  # fmt: skip
op("linalg.ldl_solve(LD, pivots, B, *, hermitian=False)", ldl.ldl_solve)
op("linalg.lu_solve(LU, pivots, B, left=True, adjoint=False)", solve.lu_solve, check="check_pivots")
op(
    "linalg.solve_ex(A, B, *, left=True, check_errors: bool = False)",
    solve.solve_ex,
    result="result info",
    fails="raise_singular",
)
op("linalg.solve(A, B, *, left=True)", solve.solve_ex, fails="raise_singular",
   text="Return x with ``A x = B`` (``x A = B`` if not ``left``)." + FAILS)  # fmt: skip
op("linalg.inv_ex(A, *, check_errors: bool = False)", solve.inv_ex, result="inverse info", fails="raise_singular")
op("linalg.inv(A)", solve.inv_ex, also=".inverse Tensor.inverse _C.inv", fails="raise_singular",
   text="Return the inverses of matrices." + FAILS)  # fmt: skip
custom("linalg.lstsq", LINEAR_ALGEBRA)
custom("linalg.matrix_rank", LINEAR_ALGEBRA, out=True)
custom("linalg.pinv", LINEAR_ALGEBRA, also=".pinverse Tensor.pinverse", out=True)
op(
    "linalg.solve_triangular(A, B, *, upper, left=True, unitriangular=False)",
    solve.solve_triangular,
    strict=True,
)
op("linalg.tensorsolve(A, B, dims=None)", solve.tensorsolve, fails="raise_singular",
   text="Return x with ``tensordot(A, x, x.ndim) = B``; `dims` of A go after the others first." + FAILS)  # fmt: skip
op("linalg.tensorinv(A, ind=2)", solve.tensorinv, fails="raise_singular",
   text="Return the inverse of A in the sense of `tensordot` over its last dims from `ind` on." + FAILS)  # fmt: skip
custom("linalg.matrix_power", LINEAR_ALGEBRA, out=True)
op("linalg.multi_dot(tensors)", solve.multi_dot)
op("linalg.vander(x, N=None, increasing=True)", solve.vander)
op("linalg.cross(input, other, *, dim=-1)", matrix.cross, oneflow="input other dim")
custom("linalg.vecdot", LINEAR_ALGEBRA, out=True)
alias("linalg.diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1)",
      "diagonal(A, offset, dim1, dim2)", oneflow="input=A offset dim1 dim2")  # fmt: skip

op("det(input)", decompose.det, READ)
op("logdet(input)", decompose.logdet, READ)
op("matrix_exp(input)", decompose.matrix_exp, READ)
alias("matrix_power(input: Tensor, n: int)", "linalg.matrix_power(input, n)", READ, out=True,
      text="Return the n-th power of square matrices; a negative one is that of the inverse." + FAILS)  # fmt: skip
op("cholesky_solve(input, input2, upper=False)", decompose.cholesky_solve, READ)
op("cholesky_inverse(L, upper=False)", decompose.cholesky_inverse, READ)
op("orgqr(input, input2)", decompose.householder_product, READ)
op("geqrf(input)", decompose.reflections, READ, result="a tau")
op("ormqr(input, tau, other, left=True, transpose=False)", decompose.reflect, READ)
op("lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True)", decompose.lu_unpack, result="P L U",
   check="check_unpacked_pivots")  # fmt: skip
custom("svd_lowrank pca_lowrank", "sbpjax._core.functions.linear_algebra.low_rank")
op("chain_matmul(*matrices)", solve.multi_dot)
op("vander(x, N=None, increasing=False)", solve.vector_powers, out=False)
alias("cholesky(input: Tensor, upper: bool = False)", "linalg.cholesky(input, upper=upper)", READ, out=True)
alias(
    "qr(input: Tensor, some: bool = True) -> tuple",
    "linalg.qr(input, 'reduced' if some else 'complete')",
    READ,
    out=True,
)
alias(
    "lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor)", "linalg.lu_solve(LU_data, LU_pivots, b)", READ, out=True
)
alias("lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple",
      "tuple(linalg.lu_factor_ex(A, pivot=pivot))[:3 if get_infos else 2]", READ, out=True)  # fmt: skip
alias("triangular_solve(b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, "
      "unitriangular: bool = False)",
      "(linalg.solve_triangular(A.mT if transpose else A, b, upper=upper != transpose, unitriangular=unitriangular), "
      "A.clone())", READ, result="solution cloned_coefficient", strict=True, out=True)  # fmt: skip
custom("svd", LINEAR_ALGEBRA, READ, out=True)
