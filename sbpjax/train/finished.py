"""`load_run`: the model of a run, to be used.

    python -m sbpjax.train examples.vision.resnet            # leaves runs/resnet
    model = load_run("runs/resnet", step="best")
    model(images)

A run leaves its configuration and checkpoints; the model is made again from the one and gets the weights of the other.
They were laid out as the run wanted; here they are on one device.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sbpjax import checkpoint, nn
from sbpjax.errors import TrainError

from .hooks import Average, Checkpoints


def load_run(run: str | os.PathLike, step: int | str | None = None, *, average: bool = True) -> nn.Module:
    """Return the model of a run of ``python -m sbpjax.train``, for inference.

    Args:
        run: the directory of the run, its `out`.
        step: that of a checkpoint, or ``"best"`` for the one with the best metric; the latest by default.
        average: take the moving averages of the parameters, if the run has kept them by `Average`: they are what it was
            evaluated with.

    Returns:
        The model on one device, in eval mode.

    Raises:
        TrainError: it is no directory of a run, or has no such checkpoint.
        CheckpointError: the checkpoint is damaged.

    Example:
        >>> try:
        ...     load_run("runs/none")
        ... except TrainError as error:
        ...     print(str(error).splitlines()[1].strip())
        seen: no such directory
    """
    from .config import instantiate, load_config

    run, asked = Path(run), f"load_run({os.fspath(run)!r})"
    if not (run / "config.yaml").is_file() or not (run / "checkpoints").is_dir():
        there, fix = "no such directory", f"python -m sbpjax.train CONFIG trainer.out={run}"
        if run.is_dir():
            there = " and ".join(f"no {name}" for name in ("config.yaml", "checkpoints") if not (run / name).exists())
        if (run / "checkpoints").is_dir():  # of a Trainer made in Python
            kept = os.fspath(run / "checkpoints")
            fix = f"checkpoint.Manager({kept!r}).restore(into={{'model': model}}, strict=False): its last weights"
        rule = "a run from a configuration leaves its config.yaml and its checkpoints in its directory"
        raise TrainError(asked, there, rule, fix)
    config = load_config(run / "config.yaml").trainer
    model = instantiate(config.model, "trainer.model")
    hooks = _hooks(config)
    better = next((hook.options["better"] for hook in hooks if isinstance(hook, Checkpoints)), "min")
    averaged = average and any(isinstance(hook, Average) for hook in hooks)
    into = {"run": {"hooks": {Average.name: {"model": model.state_dict()}}}} if averaged else {"model": model}
    with checkpoint.Manager(run / "checkpoints", better=better, keep_last=None) as manager:
        steps = manager.steps()
        chosen = manager.best() if step == "best" else step
        if not steps or (step is not None and chosen not in steps):
            seen = f"step {step!r}; there are {', '.join(f'{one:,}' for one in steps) or 'none'}"
            rule = "a checkpoint has the weights, and the best one is that of a metric of Checkpoints"
            fix = f"load_run({os.fspath(run)!r})" if steps else "train further: --resume"
            raise TrainError(asked, seen, rule, fix)
        manager.restore(chosen, into=into, strict=False)  # type: ignore[arg-type]
    return model.eval()


def _hooks(config: Any) -> list[Any]:
    """Return those hooks of a configuration that say which weights were evaluated, and which are the best."""
    from .config import instantiate

    found = config.get("hooks") or {}
    each = found.values() if hasattr(found, "values") else found
    told = (":Average", ":Checkpoints")  # the ends of what is under `_call_`
    wanted = [one for one in each if one is not None and str(one.get("_call_", "")).endswith(told)]
    return [instantiate(one, "trainer.hooks") for one in wanted]
