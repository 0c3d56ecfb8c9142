"""Transforms of functions of tensors: `grad`, `vmap`, `jvp`, `jacrev` and their like, as PyTorch's ``torch.func``."""

from .compiled import compiled as compiled
from .gradients import grad as grad
from .gradients import grad_and_value as grad_and_value
from .gradients import vjp as vjp
from .jacobians import hessian as hessian
from .jacobians import jacfwd as jacfwd
from .jacobians import jacrev as jacrev
from .jacobians import jvp as jvp
from .jacobians import linearize as linearize
from .modules import functional_call as functional_call
from .modules import functionalize as functionalize
from .modules import stack_module_state as stack_module_state
from .vmap import vmap as vmap
from .wrap_jax import wrap_jax as wrap_jax
