"""The cases that differ from PyTorch on purpose, each with its reason; `test_engine.py` holds that all still occur."""

from __future__ import annotations

import re

import numpy as np

from tests.op_specs.engine import Excuse, excuse
from tests.op_specs.engine.excuses import FINITE_CORNERS
from tests.support.generate import Input


def _endless(*values) -> bool:
    """Return whether one of several arguments is a tensor that holds a NaN or an infinity."""
    return any(isinstance(v, Input) and v.base.dtype.kind == "f" and not np.isfinite(v.base).all() for v in values)


def _misses_a_nan(error) -> bool:
    """Return whether a gradient is NaN in PyTorch only."""
    got, _, wanted = str(error).partition("; wanted ")
    return got.startswith("gradient") and "nan" not in got and "nan" in wanted


excuse(
    Excuse(
        "logical_and logical_or logical_xor logical_not",
        "inplace",
        lambda call, error: "gradient" in str(error),
        "what they overwrite has no gradient; PyTorch passes the gradient on as if nothing had been written",
        ("logical_and", "inplace", 11, 1),
    ),
    Excuse(
        "kron",
        "forward",
        lambda call, error: "view size is not compatible" in str(error),
        "PyTorch's refuses some strides, since it views its result; here every kron has a value",
        ("kron", "forward", 15, 1),
    ),
    Excuse(
        "Tensor.to",
        "corners",
        lambda call, error: str(error).startswith("result: int") and _endless(call.args[0]),
        "C++ leaves open which integer a NaN or an infinity becomes",
        ("Tensor.to", "corners", 47, 0),
    ),
    Excuse(
        "nn.functional.batch_norm nn.functional.instance_norm",
        "corners",
        lambda call, error: "nan" in str(error) and _endless(call.kwargs.get("weight")),
        "by an infinite weight PyTorch multiplies x and the mean one by one if memory is contiguous, which gives NaN, "
        "and x minus the mean if it has strides, as here",
        ("nn.functional.instance_norm", "corners", 3, 0),
    ),
    Excuse(
        "nn.functional.group_norm",
        "corners",
        lambda call, error: "nan" in str(error) and _endless(*call.args[2:3]),
        "by an infinite weight PyTorch multiplies x and the mean one by one, which gives NaN, here x minus the mean",
        ("nn.functional.group_norm", "corners", 61, 0),
    ),
    Excuse(
        "nn.functional.layer_norm",
        "corners",
        lambda call, error: str(error).startswith("gradient of tensor 0") and _endless(*call.args[2:3]),
        "by infinite weights the gradient is a sum of infinities of both signs, and which of them meet is a matter of "
        "the order of its terms",
        ("nn.functional.layer_norm", "corners", 61, 0),
    ),
    Excuse(
        "linalg.householder_product orgqr ormqr",
        "corners",
        lambda call, error: _misses_a_nan(error),
        "PyTorch's backward divides by a reflection, which has no inverse where tau |v|² is 1; the gradient exists",
        ("linalg.householder_product", "corners", 51, 0),
    ),
    Excuse(
        "scatter_reduce",
        "corners",
        lambda call, error: str(error).startswith("gradient of tensor 0") and _endless(call.args[0]),
        "PyTorch's extremes share the gradient of an element that nothing was put to among the elements equal to it; a "
        "NaN equals none, and PyTorch divides by their number; the element is the result, and has its gradient",
        ("scatter_reduce", "corners", 0, 0),
    ),
    Excuse(
        "nn.functional.hardsigmoid",
        "*",
        lambda call, error: re.search(r"gradient of .* off by \S+e-(08|09|1\d),", str(error)) is not None,
        "PyTorch multiplies by a sixth of single precision in backward",
        ("nn.functional.hardsigmoid", "corners", 44, 0),
    ),
    Excuse(
        "kthvalue",
        "corners",
        lambda call, error: "result[1]" in str(error),
        "which of equal elements is the k-th is left open, and PyTorch's partial sort decides it by their number",
        ("kthvalue", "corners", 43, 1),
    ),
    Excuse(
        "baddbmm addbmm addmm addmv addr",
        "inplace",
        lambda call, error: "refers to a single memory location" in str(error),
        "PyTorch writes these into expanded memory, where the last write stays, and refuses other ops to",
        ("baddbmm", "inplace", 43, 1),
    ),
    Excuse(
        "adjoint Tensor.adjoint conj Tensor.conj",
        "alias",
        lambda call, error: "refers to a single memory location" in str(error),
        "PyTorch fills a lazy conjugate by copying, and so refuses one of expanded memory, which it fills otherwise",
        ("adjoint", "alias", 43, 1),
    ),
)


# Ops whose inputs are finite in the form "corners", and why.
FINITE_CORNERS |= {
    "*conv[123]d *conv_transpose[123]d *conv_tbc fft.* stft istft *.stft *.istft linalg.lu_solve lu_solve linalg.lstsq "
    "linalg.ldl_solve linalg.householder_product orgqr ormqr": "products with zeros are formed or left out as the "
    "algorithm likes, and transforms and solvers mix a NaN into results that do not depend on it",
    "native_layer_norm native_group_norm native_batch_norm": "PyTorch's running mean of two infinities is NaN",
    "std_mean var_mean": "PyTorch's running mean of two infinities is NaN",
    "nn.functional.lp_pool*": "PyTorch stops the gradient of a window that holds a NaN",
    "nn.functional.combined_margin_loss": "PyTorch has none; the formula it is compared to forms products with 0",
    "*grid_sample*": "PyTorch takes a place that is NaN for inside or outside by dim, padding and direction, or reads "
    "memory that is not the image's, and ends",
    "nn.functional.embedding_bag": "PyTorch keeps a NaN of a maximum only if it comes first",
    "nn.functional.interpolate nn.functional.upsample*": "PyTorch leaves out or multiplies by zero what has no weight",
    "nn.functional.softshrink": "PyTorch's vectors keep the gradient of a NaN, what is left beside them loses it",
    "special.i1 special.i1e": "PyTorch takes a NaN for a small number in backward",
    "cast Tensor.cast Tensor.byte Tensor.char Tensor.int Tensor.long Tensor.short": "C++ leaves open which integer "
    "a NaN becomes",
    "special.legendre_polynomial_p special.laguerre_polynomial_l special.*chebyshev_polynomial_?": "PyTorch 2.13 gives "
    "NaN what its memory held",
}
