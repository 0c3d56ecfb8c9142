"""`LBFGS` optimizer: limited-memory quasi-Newton steps with an optional line search.

    optimizer = LBFGS(model.parameters(), line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = loss_of(model(x))
        loss.backward()
        return loss

    optimizer.step(closure)

One `step` evaluates the closure a number of times that depends on its values; so it is for eager training alone.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from sbpjax._core import functions
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.handle.dtype import float32, float64
from sbpjax._core.tensor.storage.exchange import write_atomically
from sbpjax._core.tensor.storage.payload import make_unshared_leaf, put_all_from
from sbpjax._core.tensor.tape.grad_mode import enable_grad, no_grad
from sbpjax.errors import OpError, OpTypeError, OpValueError
from sbpjax.optim import saving
from sbpjax.optim.algorithms.line_search import LineSearchTrial, strong_wolfe
from sbpjax.optim.check import at_least_zero, params_value
from sbpjax.optim.optimizer import Optimizer
from sbpjax.optim.step_hooks import with_step_hooks

_STATE = ("func_evals", "n_iter", "d", "t", "old_dirs", "old_stps", "ro", "al", "H_diag", "prev_flat_grad", "prev_loss")


class LBFGS(Optimizer):
    """Minimize by the limited-memory method of Broyden, Fletcher, Goldfarb and Shanno.

    Args:
        params: the parameters; one group.
        lr: the first step tried along a direction.
        max_iter: directions per `step`.
        max_eval: evaluations of the closure per `step`; ``max_iter * 5 // 4`` if not given.
        tolerance_grad: stop when no element of the gradient is larger.
        tolerance_change: stop when no element, and not the loss, changes by more.
        history_size: the number of stored changes.
        line_search_fn: None takes `lr` as it is, ``"strong_wolfe"`` searches.

    Source: Liu and Nocedal, On the Limited Memory BFGS Method (1989).
    """

    def __init__(
        self,
        params: Iterable,
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ):
        options = {"lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval}
        options |= {"tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change}
        super().__init__(params, options | {"history_size": history_size, "line_search_fn": line_search_fn})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        if self.param_groups:
            rule = "LBFGS doesn't support per-parameter options (parameter groups): it sees all as one vector"
            raise params_value("a second group", rule, "LBFGS(model.parameters())")
        super().add_param_group(param_group)

    def _check(self, group: dict[str, Any]) -> None:
        at_least_zero("lr", group["lr"])
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            rule = "only 'strong_wolfe' is supported for line_search_fn"
            raise params_value(f"line_search_fn={group['line_search_fn']!r}", rule, "line_search_fn='strong_wolfe'")

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ()

    def prepare(self, made: Any = None) -> NoReturn:
        """Raise: the number of closure runs depends on values.

        Raises:
            OpError: always.
        """
        rule = "how often its closure runs depends on the values it returns, which a compiled program does not know"
        raise OpError("LBFGS in a compiled step", "LBFGS", rule, "step it eagerly, or compile the closure")

    # -- all parameters as one vector ------------------------------------------------------------------------------

    @property
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]

    def _gradient(self) -> Tensor:
        return functions.cat([(p.detach() * 0 if p.grad is None else p.grad).reshape(-1) for p in self._params])

    def _move(self, direction: Tensor, t: float) -> None:
        start, moved = 0, []
        for param in self._params:
            count = param.numel()
            moved.append(make_unshared_leaf(param).add_(direction[start : start + count].reshape(param.shape), alpha=t))
            start += count
        put_all_from(self._params, moved)

    # -- the step --------------------------------------------------------------------------------------------------

    @with_step_hooks
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Minimize for up to `max_iter` directions.

        Args:
            closure: computes the loss anew and calls backward; if it raises, the step changes nothing.

        Returns:
            The loss of its first evaluation.
        """
        if closure is None:
            rule = "LBFGS.step() missing 1 required positional argument: 'closure'; it evaluates the loss several times"
            raise OpTypeError("LBFGS.step()", "no closure", rule, "optimizer.step(closure)")
        memory: dict[str, Any] = self.state[self._params[0]]
        before = {name: list(v) if isinstance(v, list) else v for name, v in memory.items()}
        found: list = []
        done: list = []
        try:
            with no_grad():
                step = lambda: found.append(self._minimize(closure))  # noqa: E731
                write_atomically(self._params, step, map(done.append, (True,)))
        except BaseException:
            if not done:
                memory.clear()
                memory.update(before)
            raise
        return found[0]

    def _minimize(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        memory: dict[str, Any] = self.state[self._params[0]]
        memory.setdefault("func_evals", 0)
        memory.setdefault("n_iter", 0)

        def evaluate() -> Any:
            with enable_grad():
                return closure()

        first = evaluate()
        loss, grad = float(first), self._gradient()
        memory["func_evals"] += 1
        evaluations = 1
        if _largest(grad) <= group["tolerance_grad"]:
            return first
        for iteration in range(1, group["max_iter"] + 1):
            memory["n_iter"] += 1
            direction = self._direction(memory, grad, group["history_size"])
            memory.update(d=direction, prev_flat_grad=grad, prev_loss=loss)
            t = float(group["lr"])
            if memory["n_iter"] == 1:
                t *= min(1.0, 1.0 / _number(grad.abs().sum()))
            slope = _dot(grad, direction)
            if slope > -group["tolerance_change"]:
                memory["t"] = t
                break
            more = 0
            if group["line_search_fn"] is not None:
                limit = group["max_eval"] - evaluations
                trial, more = self._search(evaluate, LineSearchTrial(0.0, loss, grad, slope), t, direction, limit)
                t, loss, grad = trial.t, trial.loss, trial.grad
                self._move(direction, t)
            else:
                self._move(direction, t)
                if iteration < group["max_iter"]:
                    loss, grad, more = float(evaluate()), self._gradient(), 1
            memory["t"] = t
            memory["func_evals"] += more
            evaluations += more
            if (
                evaluations >= group["max_eval"]
                or _largest(grad) <= group["tolerance_grad"]
                or _largest(direction) * abs(t) <= group["tolerance_change"]
                or abs(loss - memory["prev_loss"]) < group["tolerance_change"]
            ):
                break
        return first

    def _direction(self, memory: dict[str, Any], grad: Tensor, history_size: int) -> Tensor:
        """Add the last change to the memory, and return minus the gradient times the inverse Hessian's estimate."""
        if memory["n_iter"] == 1:
            memory.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            return -grad
        y, s = grad - memory["prev_flat_grad"], memory["d"] * memory["t"]
        curvature = _dot(y, s)
        changes, steps, weights = memory["old_dirs"], memory["old_stps"], memory["ro"]
        if curvature > 1e-10:  # otherwise the estimate would not stay positive
            for kept, new in ((changes, y), (steps, s), (weights, float(1.0 / curvature))):
                if len(kept) == history_size:
                    kept.pop(0)
                kept.append(new)
            memory["H_diag"] = float(curvature / _dot(y, y))
        memory.setdefault("al", [None] * history_size)
        q, parts = -grad, []
        for y, s, rho in zip(reversed(changes), reversed(steps), reversed(weights)):
            parts.append((s * q).sum() * rho)
            q = q - y * parts[-1]
        memory["al"][: len(parts)] = parts[::-1]
        r = q * memory["H_diag"]
        for y, s, rho, part in zip(changes, steps, weights, reversed(parts)):
            r = r + s * (part - (y * r).sum() * rho)
        return r

    def _search(
        self, evaluate: Callable, start: LineSearchTrial, t: float, direction: Tensor, limit: int
    ) -> tuple[LineSearchTrial, int]:
        origin = [make_unshared_leaf(p) for p in self._params]

        def attempt(t: float) -> LineSearchTrial:
            self._move(direction, t)
            loss, grad = float(evaluate()), self._gradient()
            put_all_from(self._params, origin)
            return LineSearchTrial(t, loss, grad, _dot(grad, direction))

        tolerance_change = self.param_groups[0]["tolerance_change"]
        return strong_wolfe(attempt, start, t, _largest(direction), tolerance_change, limit)

    # -- saving ----------------------------------------------------------------------------------------------------

    def check_state_dict(self, state_dict: dict[str, Any]) -> None:
        saving.check(self, {**state_dict, "state": {}})
        saved = state_dict["state"].get(0, {})
        size = sum(p.numel() for p in self._params)
        vectors = [saved.get("d"), saved.get("prev_flat_grad"), *saved.get("old_dirs", ()), *saved.get("old_stps", ())]
        shapes = sorted({tuple(v.shape) for v in vectors if v is not None})
        unknown = sorted({*saved} - {*_STATE}) + [f"parameter {n}" for n in state_dict["state"] if n != 0]
        if unknown or shapes not in ([], [(size,)]):
            rule = f"it keeps {sorted(_STATE)}, with vectors of {size} elements, for parameter 0"
            fix = "load the state_dict() of an LBFGS of the same parameters"
            seen = f"unknown {unknown}" if unknown else f"vectors of shapes {shapes}"
            raise OpValueError("LBFGS.load_state_dict", seen, rule, fix)

    def _take_state(self, state_dict: dict[str, Any]) -> None:
        saved = state_dict["state"].get(0, {})
        self.state.clear()
        if saved:
            self.state[self._params[0]] = {name: _copy_state(value) for name, value in saved.items()}
        for name, value in state_dict["param_groups"][0].items():
            if name != "params":
                self.param_groups[0][name] = copy.deepcopy(value)


def _dot(x: Tensor, y: Tensor) -> Any:
    return _number((x * y).sum())


def _number(x: Tensor) -> Any:
    """Return a 0-d tensor as a NumPy scalar of its own precision.

    The line search adds such numbers to losses and compares the sums. In double precision a loss that stays the same to
    the last bit of float32 would never have fallen enough, where in PyTorch, whose scalars are tensors, it has.
    """
    return x.numpy()[()] if x.dtype in (float32, float64) else x.item()


def _largest(x: Tensor) -> float:
    return x.abs().max().item()


def _copy_state(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone()
    return [_copy_state(v) for v in value] if isinstance(value, list) else value
