"""Pruning: multiply a parameter by a mask of zeros and ones, in a forward pre-hook.

Half of the weights of a layer, the smallest ones, are left out::

    prune.l1_unstructured(layer, "weight", amount=0.5)

The parameter becomes ``weight_orig``, the mask the buffer ``weight_mask``, and ``layer.weight`` the product of both,
computed anew before every forward. `remove` makes the product the parameter again. A second pruning of the same
parameter prunes the elements that the first kept: a `PruningContainer` holds both.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable

from sbpjax._core import functions
from sbpjax._core.functions import random as random_ops
from sbpjax._core.tensor.creation import like
from sbpjax.errors import OpError, OpTypeError, OpValueError


class BasePruningMethod(ABC):
    """Base of pruning methods; subclasses give `compute_mask` and `PRUNING_TYPE`."""

    PRUNING_TYPE = "unstructured"
    _tensor_name: str

    def __call__(self, module, inputs) -> None:
        """Set the masked parameter of a module; a forward pre-hook."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t, default_mask):
        """Return the mask of a tensor, to be laid over ``default_mask``.

        Args:
            t: the importance of every element; the tensor itself unless other scores were given.
            default_mask: the mask of earlier prunings.
        """

    def apply_mask(self, module):
        """Return the original parameter of a module times its mask."""
        name = getattr(self, "_tensor_name", None)
        if name is None:
            raise OpError("apply_mask", f"{module!r}", "the module has been pruned", "apply(module, name)")
        original = getattr(module, f"{name}_orig")
        return getattr(module, f"{name}_mask").to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module, name: str, *args, importance_scores=None, **kwargs):
        """Prune a parameter of a module.

        Args:
            module: the module.
            name: the parameter's name in it.
            *args: arguments of the method's constructor.
            importance_scores: scores to use instead of the values; of the parameter's shape.
            **kwargs: arguments of the method's constructor.

        Returns:
            The hook: this method, or the container that holds it and earlier ones.
        """
        method = cls(*args, **kwargs)
        method._tensor_name = name
        key, earlier = _hook_of(module, name)
        if earlier is not None:
            container = PruningContainer()
            container._tensor_name = name
            for one in earlier if isinstance(earlier, PruningContainer) else (earlier,):
                container.add_pruning_method(one)
            container.add_pruning_method(method)
            method = container
        original = getattr(module, name)
        scores = original if importance_scores is None else importance_scores
        if scores.shape != original.shape:
            seen = f"scores {tuple(scores.shape)}, parameter {tuple(original.shape)}"
            raise OpValueError(f"prune {name!r}", seen, "scores have the parameter's shape", "give such")
        default = like.ones_like(original) if earlier is None else getattr(module, f"{name}_mask").detach().clone()
        mask = method.compute_mask(scores, default)  # may raise: nothing has changed yet
        if earlier is None:
            parameter = module._parameters[name]
            del module._parameters[name]
            module.register_parameter(f"{name}_orig", parameter)
        else:
            del module._forward_pre_hooks[key]
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t, default_mask=None, importance_scores=None):
        """Return a tensor with its pruned elements set to 0."""
        scores = t if importance_scores is None else importance_scores
        default = like.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=default)

    def remove(self, module) -> None:
        """Make the masked parameter of a module a parameter again."""
        name = self._tensor_name
        masked = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        parameter = module._parameters.pop(f"{name}_orig")
        parameter.data = masked.data
        del module._buffers[f"{name}_mask"]
        setattr(module, name, parameter)


def _hook_of(module, name: str):
    """Return the key and the pruning of a parameter among a module's hooks, or (None, None)."""
    for key, (hook, _) in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return key, hook
    return None, None


class PruningContainer(BasePruningMethod):
    """Chain of prunings of one parameter."""

    def __init__(self, *args) -> None:
        self._pruning_methods: tuple = ()
        methods = args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args
        for method in methods:
            if not self._pruning_methods:
                self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method) -> None:
        """Add a method for the same parameter."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise OpTypeError(
                "add_pruning_method", type(method).__name__, "it is a BasePruningMethod", "give an instance"
            )
        if method is not None and method._tensor_name != self._tensor_name:
            seen = f"one for {method._tensor_name!r} in a container for {self._tensor_name!r}"
            raise OpValueError("add_pruning_method", seen, "all prune one parameter", "a container each")
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, index):
        return self._pruning_methods[index]

    def compute_mask(self, t, default_mask):
        """Return the earlier mask combined with the last method's on the elements kept so far."""
        method = self._pruning_methods[-1]
        mask = default_mask.clone()
        if method.PRUNING_TYPE == "unstructured":
            left = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.ndim
            alive = mask.sum(dim=[d for d in range(t.ndim) if d != dim]) != 0
            left = (*[slice(None)] * dim, alive)
        elif method.PRUNING_TYPE == "global":
            left = (slice(None),) * t.ndim
        else:
            rule = "PRUNING_TYPE is 'unstructured', 'structured' or 'global'"
            raise OpValueError("compute_mask", f"{method.PRUNING_TYPE!r}", rule, "set it on the class")
        mask[left] = method.compute_mask(t[left], default_mask=mask[left]).to(dtype=mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing: a parameter with a mask of ones."""

    def compute_mask(self, t, default_mask):
        """Return the earlier mask."""
        return default_mask


class _Amount(BasePruningMethod):
    """Base of methods that prune a number or a share of elements."""

    def __init__(self, amount) -> None:
        if not isinstance(amount, numbers.Real):
            raise OpTypeError("pruning", f"amount {amount!r}", "amount is a number", "amount=0.5")
        whole = isinstance(amount, numbers.Integral)
        if amount < 0 or (not whole and amount > 1.0):
            rule = "amount is a share in [0, 1] or a whole number from 0 on"
            raise OpValueError("pruning", f"amount {amount}", rule, "amount=0.5")
        self.amount = amount

    def _count(self, size: int, cap: bool = True) -> int:
        """Return the number of pruned elements of ``size``."""
        if not isinstance(self.amount, numbers.Integral):
            return round(self.amount * size)
        if self.amount > size and cap:
            rule = f"amount is at most the {size} there are"
            raise OpValueError("pruning", f"amount {self.amount}", rule, f"amount={size}")
        return int(self.amount)


class RandomUnstructured(_Amount):
    """Prunes elements at random."""

    def compute_mask(self, t, default_mask):
        """Return the earlier mask without so many random elements."""
        return _without_lowest(random_ops.rand_like(t), default_mask, self._count(t.nelement()))

    @classmethod
    def apply(cls, module, name: str, amount):  # type: ignore[override]
        """Prune a parameter of a module."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Amount):
    """Prunes the elements nearest to 0."""

    def compute_mask(self, t, default_mask):
        """Return the earlier mask without the smallest elements."""
        return _without_lowest(t.detach().abs(), default_mask, self._count(t.nelement()))

    @classmethod
    def apply(cls, module, name: str, amount, importance_scores=None):  # type: ignore[override]
        """Prune a parameter of a module."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


def _without_lowest(scores, mask, count: int):
    """Return a mask with 0 where the ``count`` lowest scores are."""
    mask = mask.clone()
    if count:
        lowest = functions.topk(scores.reshape(-1), k=count, largest=False).indices
        flat = mask.reshape(-1).clone()
        flat[lowest] = 0
        mask = flat.reshape(mask.shape)
    return mask


class _Structured(_Amount):
    """A method that prunes whole slices along a dim."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def _slices(self, t, default_mask, scores_of):
        if t.ndim <= 1:
            seen = f"a tensor of {t.ndim} dims"
            raise OpValueError("structured pruning", seen, "it has at least 2 dims", "l1_unstructured")
        if not -t.ndim <= self.dim < t.ndim:
            raise OpError("structured pruning", f"dim {self.dim} of {t.ndim}", "the dim exists", "dim=0")
        dim, size = self.dim % t.ndim, t.shape[self.dim]
        count = self._count(size)
        if count == 0:
            return default_mask
        keep = _without_lowest(scores_of(dim), like.ones_like(t.select(dim, 0).reshape(-1)[:1]).repeat(size), count)
        return default_mask * keep.to(dtype=default_mask.dtype).reshape([-1 if d == dim else 1 for d in range(t.ndim)])


class RandomStructured(_Structured):
    """Prunes slices along a dim at random."""

    def compute_mask(self, t, default_mask):
        """Return the earlier mask without so many random slices."""
        return self._slices(t, default_mask, lambda dim: random_ops.rand(t.shape[dim]))

    @classmethod
    def apply(cls, module, name: str, amount, dim: int = -1):  # type: ignore[override]
        """Prune a parameter of a module."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prunes the slices along a dim with the smallest norm of order n."""

    def __init__(self, amount, n, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def compute_mask(self, t, default_mask):
        """Return the earlier mask without the slices of smallest norm."""

        def norms(dim: int):
            return functions.norm(t.detach(), p=self.n, dim=[d for d in range(t.ndim) if d != dim])

        return self._slices(t, default_mask, norms)

    @classmethod
    def apply(cls, module, name: str, amount, n, dim: int, importance_scores=None):  # type: ignore[override]
        """Prune a parameter of a module."""
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes where a given mask is 0."""

    PRUNING_TYPE = "global"

    def __init__(self, mask) -> None:
        self.mask = mask

    def compute_mask(self, t, default_mask):
        """Return the product of the earlier mask and this one."""
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module, name: str, mask):  # type: ignore[override]
        """Prune a parameter of a module."""
        return super().apply(module, name, mask=mask)


# ---------------------------------------------------------------------------------------------------------- functions


def identity(module, name: str):
    """Give a parameter a mask of ones; return the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module, name: str, amount):
    """Prune elements of a parameter at random; return the module."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module, name: str, amount, importance_scores=None):
    """Prune the elements of a parameter nearest to 0, or of lowest importance; return the module."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module, name: str, amount, dim: int):
    """Prune slices of a parameter along a dim at random; return the module."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module, name: str, amount, n, dim: int, importance_scores=None):
    """Prune the slices of a parameter along a dim with the smallest norm of order n; return the module."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module, name: str, mask):
    """Prune a parameter where a mask is 0; return the module."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs) -> None:
    """Prune elements of several parameters as if they were one vector.

    Args:
        parameters: ``(module, name)`` of each.
        pruning_method: a class of unstructured pruning.
        importance_scores: by ``(module, name)``, scores to use instead of the values.
        **kwargs: arguments of the method's constructor, such as ``amount``.
    """
    if not isinstance(parameters, Iterable):
        seen = type(parameters).__name__
        raise OpTypeError("global_unstructured", seen, "parameters are pairs", "[(module, 'weight')]")
    scores_of = importance_scores or {}
    if not isinstance(scores_of, dict):
        raise OpTypeError("global_unstructured", repr(scores_of), "importance_scores is a dict", "{}")
    parameters = list(parameters)
    scores = [scores_of.get((m, name), getattr(m, name)).reshape(-1) for m, name in parameters]
    masks = [getattr(m, f"{name}_mask", like.ones_like(getattr(m, name))).reshape(-1) for m, name in parameters]
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        rule = "only unstructured pruning can be global"
        raise OpTypeError("global_unstructured", pruning_method.__name__, rule, "L1Unstructured")
    container.add_pruning_method(method)
    together = container.compute_mask(functions.cat(scores), functions.cat(masks))
    start = 0
    for module, name in parameters:
        values = getattr(module, name)
        count = values.numel()
        custom_from_mask(module, name, mask=together[start : start + count].view_as(values))
        start += count


def remove(module, name: str):
    """Make the pruning of a parameter permanent; return the module."""
    key, hook = _hook_of(module, name)
    if hook is None:
        rule = "the parameter is pruned"
        raise OpValueError(f"prune.remove({name!r})", type(module).__name__, rule, "prune it first")
    hook.remove(module)
    del module._forward_pre_hooks[key]
    return module


def is_pruned(module) -> bool:
    """Return whether a parameter of a module, or of one inside it, is pruned."""
    return any(isinstance(h, BasePruningMethod) for m in module.modules() for h, _ in m._forward_pre_hooks.values())
