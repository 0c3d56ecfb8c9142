"""`load_run`: load the model of a run for inference.

    python -m sbpjax.train examples.vision.resnet            # leaves runs/resnet
    model = load_run("runs/resnet", step="best")
    model(images)

A run leaves its configuration and checkpoints; the model is built from the one and gets the weights of the other, on
one device, whatever the layout in the run was.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sbpjax import checkpoint, nn
from sbpjax.errors import ConfigError, TrainError
from sbpjax.utils.host import LazyModule

from .hooks import Average, Checkpoints

_omegaconf = LazyModule("omegaconf")  # an extra, as for the rest
_config = LazyModule("sbpjax.train.config")
_names = LazyModule("sbpjax.train.config.names")
_saved = LazyModule("sbpjax.train.config.saved")


def load_run(
    run: str | os.PathLike,
    step: int | str | None = None,
    *,
    average: bool = True,
    allow: Iterable[str] = (),
    trust: bool = False,
) -> nn.Module:
    """Return the model of a run of ``python -m sbpjax.train``, for inference.

    Args:
        run: the directory of the run, its `out`.
        step: that of a checkpoint, or ``"best"`` for the one with the best metric; the latest by default.
        average: take the moving averages of the parameters, if the run has kept them by `Average` and was evaluated
            with them.
        allow: packages, and ``.py`` files, of which the run's ``config.yaml`` may call classes and functions, in
            addition to the parts of sbpjax: ``allow=("my_project",)``. Allow what you would import.
        trust: call anything that the file names; this runs its author's code.

    Returns:
        The model on one device, in eval mode.

    Raises:
        TrainError: it is no directory of a run, or has no such checkpoint.
        ConfigError: its ``config.yaml`` is damaged, makes no model, or has a call that is not allowed.
        CheckpointError: the checkpoint is damaged.

    Example:
        >>> try:
        ...     load_run("runs/none")
        ... except TrainError as error:
        ...     print(str(error).splitlines()[1].strip())
        seen: no such directory
    """
    run, operation = Path(run), f"load_run({os.fspath(run)!r})"
    if not (run / "config.yaml").is_file() or not (run / "checkpoints").is_dir():
        there, fix = "no such directory", f"python -m sbpjax.train CONFIG trainer.out={run}"
        if run.is_dir():
            there = " and ".join(f"no {name}" for name in ("config.yaml", "checkpoints") if not (run / name).exists())
        if (run / "checkpoints").is_dir():  # of a Trainer made in Python
            kept = os.fspath(run / "checkpoints")
            fix = f"checkpoint.Manager({kept!r}).restore(into={{'model': model}}, strict=False): its last weights"
        rule = "a run from a configuration leaves its config.yaml and its checkpoints in its directory"
        raise TrainError(operation, there, rule, fix)
    config, allowed = _saved.read_saved(run / "config.yaml"), _names.Allowed(allow, trust=trust, operation=operation)
    model = _config.instantiate(_part(config, "trainer.model", operation), "trainer.model", allowed=allowed)
    if not isinstance(model, nn.Module):
        rule = "the value of 'trainer.model' makes a module"
        raise ConfigError(operation, f"a {type(model).__name__}", rule, "the config.yaml of the run, as it was written")
    hooks = _hooks(_part(config, "trainer.hooks", operation), allowed, operation)
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
            raise TrainError(operation, seen, rule, fix)
        manager.restore(chosen, into=into, strict=False)  # type: ignore[arg-type]
    return model.eval()


def _part(config: Any, name: str, operation: str) -> Any:
    """Return a part of a configuration."""
    try:
        return _omegaconf.OmegaConf.select(config, name)
    except _omegaconf.errors.OmegaConfBaseException as error:
        seen, rule = str(error).splitlines()[0], "a run's config.yaml has a trainer, with a model"
        raise ConfigError(operation, f"{name}: {seen}", rule, "the config.yaml of the run, as it was written") from None


def _hooks(found: Any, allowed: Any, operation: str) -> list[Any]:
    """Return the hooks of a configuration that define the evaluated weights and the best checkpoint."""
    if not isinstance(found, (Mapping, Sequence, type(None))):
        seen, rule = f"trainer.hooks: {found!r:.80}", "hooks are a list, or a dict with their names"
        raise ConfigError(operation, seen, rule, "the config.yaml of the run, as it was written")
    suffixes = (":Average", ":Checkpoints")  # the ends of the names under `_call_`
    try:
        each = list(found.values() if isinstance(found, Mapping) else found or ())
        wanted = [one for one in each if isinstance(one, Mapping) and str(one.get("_call_", "")).endswith(suffixes)]
    except _omegaconf.errors.OmegaConfBaseException as error:
        seen, rule = f"trainer.hooks: {str(error).splitlines()[0]}", "${a.b} refers to another value"
        raise ConfigError(operation, seen, rule, "the config.yaml of the run, as it was written") from None
    return [_config.instantiate(one, "trainer.hooks", allowed=allowed) for one in wanted]
