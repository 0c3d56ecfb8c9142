"""`Optimizer`: OneFlow's optimizer of embeddings, around an ordinary one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .embedding import Embedding


class Optimizer:
    """An optimizer that updates embeddings along with the rest.

    Args:
        optimizer: the optimizer; parameters of the embeddings that it lacks are added to it.
        embeddings: the embeddings.
    """

    def __init__(self, optimizer: Any, embeddings: Sequence[Embedding]) -> None:
        self.optimizer, self.embeddings = optimizer, list(embeddings)
        known = {id(p) for group in optimizer.param_groups for p in group["params"]}
        added = [p for e in embeddings for p in e.parameters() if id(p) not in known]
        if added:
            optimizer.add_param_group({"params": added})

    def step(self, closure: Any = None) -> Any:
        """Update all parameters."""
        return self.optimizer.step(closure)

    def zero_grad(self, set_to_none: bool | None = None) -> None:
        """Set all gradients to zero, or drop them."""
        self.optimizer.zero_grad(set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """Return the optimizer's state."""
        return self.optimizer.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the optimizer's state."""
        self.optimizer.load_state_dict(state_dict)
