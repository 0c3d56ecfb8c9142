"""Function transforms of tensors: `grad`, `vmap`, `jvp`, `jacrev` and others, as in PyTorch's ``torch.func``."""

from sbpjax._core.functions.random import draw as draw
from sbpjax._core.tensor.storage.payload import is_traced as is_traced
from sbpjax._core.tracing.compiled import compile_function as compile_function
from sbpjax._core.tracing.functional_call import functional_call as functional_call
from sbpjax._core.tracing.functional_call import functionalize as functionalize
from sbpjax._core.tracing.functional_call import stack_module_state as stack_module_state
from sbpjax._core.tracing.gradients import grad as grad
from sbpjax._core.tracing.gradients import grad_and_value as grad_and_value
from sbpjax._core.tracing.gradients import vjp as vjp
from sbpjax._core.tracing.jacobians import hessian as hessian
from sbpjax._core.tracing.jacobians import jacfwd as jacfwd
from sbpjax._core.tracing.jacobians import jacrev as jacrev
from sbpjax._core.tracing.jacobians import jvp as jvp
from sbpjax._core.tracing.jacobians import linearize as linearize
from sbpjax._core.tracing.vmap import vmap as vmap
from sbpjax._core.tracing.wrap_jax import wrap_jax as wrap_jax
