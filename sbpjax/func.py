"""Transforms of functions of tensors: `grad`, `vmap`, `jvp`, `jacrev` and their like, as PyTorch's ``torch.func``."""

from sbpjax.tracing.compiled import compiled as compiled
from sbpjax.tracing.functional_call import functional_call as functional_call
from sbpjax.tracing.functional_call import functionalize as functionalize
from sbpjax.tracing.functional_call import stack_module_state as stack_module_state
from sbpjax.tracing.gradients import grad as grad
from sbpjax.tracing.gradients import grad_and_value as grad_and_value
from sbpjax.tracing.gradients import vjp as vjp
from sbpjax.tracing.jacobians import hessian as hessian
from sbpjax.tracing.jacobians import jacfwd as jacfwd
from sbpjax.tracing.jacobians import jacrev as jacrev
from sbpjax.tracing.jacobians import jvp as jvp
from sbpjax.tracing.jacobians import linearize as linearize
from sbpjax.tracing.vmap import vmap as vmap
from sbpjax.tracing.wrap_jax import wrap_jax as wrap_jax
