"""Derivatives of functions on the tape: `jacobian`, `hessian`, `vjp`, `jvp`, `vhp`, `hvp`."""

from sbpjax.tracing.derivatives import hessian as hessian
from sbpjax.tracing.derivatives import hvp as hvp
from sbpjax.tracing.derivatives import jacobian as jacobian
from sbpjax.tracing.derivatives import jvp as jvp
from sbpjax.tracing.derivatives import vhp as vhp
from sbpjax.tracing.derivatives import vjp as vjp
