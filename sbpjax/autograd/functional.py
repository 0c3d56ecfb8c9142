"""Derivatives of functions on the tape: `jacobian`, `hessian`, `vjp`, `jvp`, `vhp`, `hvp`."""

from sbpjax._core.tracing.derivatives import hessian as hessian
from sbpjax._core.tracing.derivatives import hvp as hvp
from sbpjax._core.tracing.derivatives import jacobian as jacobian
from sbpjax._core.tracing.derivatives import jvp as jvp
from sbpjax._core.tracing.derivatives import vhp as vhp
from sbpjax._core.tracing.derivatives import vjp as vjp
