"""Training command: ``python -m sbpjax.train CONFIG [a.b=1 …] [options]`` runs a configuration.

    python -m sbpjax.train configs/gpt2.py trainer.max_steps=100 trainer.out=run8
    python -m sbpjax.train configs/gpt2.py --resume
    python -m sbpjax.train configs/gpt2.py --memory v5p:4x4x4

A configuration has a `Trainer` under ``trainer``, and optionally a ``seed``. An error is one message, and exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
from collections.abc import Sequence
from typing import Any

import sbpjax as flow
from sbpjax import env
from sbpjax.errors import ConfigError, SbpjaxError, TrainError, full_tracebacks, nearest
from sbpjax.utils.host import LazyModule, command_parser

from .disk import run_on_rank_0
from .hooks import Checkpoints, Evaluation
from .hooks.interrupt import StopOnInterrupt
from .memory_estimate import report_step_estimate
from .step import StepOptions
from .trainer import Trainer
from .writers import LineWriter

_INTERRUPTED = 128 + signal.SIGINT  # as a shell reports it

_config = LazyModule("sbpjax.train.config")  # of omegaconf, an extra: `main` prints the error
_lazy = LazyModule("sbpjax.train.config.lazy")
_saved = LazyModule("sbpjax.train.config.saved")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command's options."""
    made = command_parser("sbpjax.train")
    made.add_argument("config", help="a .py file, a module, or the config.yaml of a run")
    made.add_argument("overrides", nargs="*", metavar="a.b=1", help="values that override those in the file")
    made.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="PACKAGE",
        help="a package whose names a config.yaml may also call",
    )
    made.add_argument("--trust", action="store_true", help="let a config.yaml call any name, and so run any code")
    made.add_argument("--resume", action="store_true", help="continue from the latest checkpoint, if any")
    made.add_argument("--eval-only", action="store_true", help="evaluate the latest checkpoint and exit")
    made.add_argument("--fast-dev-run", action="store_true", help="run two steps and small evaluations; write nothing")
    made.add_argument("--explain", action="store_true", help="print the communication of a step and exit")
    made.add_argument("--memory", metavar="MACHINE", help="print the memory of a step on another machine and exit")
    made.add_argument("--auto", action="store_true", help="let the planner choose the layouts")
    return made


def configure(options: argparse.Namespace) -> Any:
    """Return the configuration of a command line.

    Raises:
        ConfigError: the file cannot be read, or an override does not fit it.
    """
    doors = {"allow": options.allow, "trust": options.trust}
    config = _config.load_config(options.config, **doors)
    operation = f"python -m sbpjax.train {options.config}"
    if "trainer" not in config:
        names = [str(name) for name in config]
        near = nearest("trainer", names)
        rule = "a configuration has a LazyCall(Trainer)(...) under 'trainer'"
        fix = f"trainer = {near}" if near else "trainer = LazyCall(Trainer)(model=..., ...)"
        raise ConfigError(operation, f"the names {', '.join(names) or 'none'}", rule, fix)
    config = _config.override(config, options.overrides, **doors)
    with _lazy.convert_interpolation_errors(operation):
        _adapt(config, options, operation)
    return config


def _adapt(config: Any, options: argparse.Namespace, operation: str) -> None:
    """Apply the command's options to a configuration."""
    trainer = config.trainer
    if not hasattr(trainer, "get"):
        rule, fix = "under 'trainer' is the call that makes a Trainer", "trainer = LazyCall(Trainer)(model=..., ...)"
        raise ConfigError(operation, f"trainer: {trainer!r:.100}", rule, fix)
    if options.auto:
        if trainer.get("options") is None:
            trainer.options = _config.LazyCall(StepOptions)()
        trainer.options.auto = True
    if options.memory is not None:
        if trainer.get("parallel") is None:
            trainer.parallel = _config.LazyCall(flow.models.Parallel)()
        trainer.parallel.device = options.memory
        trainer.out = None
    if options.fast_dev_run:
        trainer.out = None


def build_trainer(config: Any, *, fast: bool = False) -> Trainer:
    """Return the trainer of a configuration.

    Args:
        config: the configuration.
        fast: for two steps, without checkpoints.

    Raises:
        ConfigError: a call has wrong arguments, or makes no trainer.
    """
    with _lazy.convert_interpolation_errors("reading seed"):
        seed = config.get("seed", 0)
    if not isinstance(seed, int):
        raise ConfigError("python -m sbpjax.train", f"seed: {seed!r:.100}", "the seed is an integer", "seed = 0")
    flow.manual_seed(seed)
    trainer = _config.instantiate(config.trainer, "trainer")
    if not isinstance(trainer, Trainer):
        rule = "the value of 'trainer' makes a Trainer"
        raise ConfigError("python -m sbpjax.train", f"a {type(trainer).__name__}", rule, "LazyCall(Trainer)(...)")
    if fast:
        trainer.max_steps = min(trainer.max_steps, 2)
        trainer.hooks = [hook for hook in trainer.hooks if not isinstance(hook, Checkpoints)]
        trainer.writers = [LineWriter()]
        for hook in trainer.hooks:
            if isinstance(hook, Evaluation):
                hook.batches = 1
    return trainer


def check_directory(trainer: Trainer, config: Any, resume: bool, evaluates: bool = False) -> None:
    """Raise if a directory holds the checkpoints of another run, or if a resumed run has another model.

    Other changes are printed, unless the run only evaluates: its output is one line of JSON.

    Raises:
        TrainError: the directory belongs to another run or model; nothing was written.
    """
    hook = next((hook for hook in trainer.hooks if isinstance(hook, Checkpoints)), None)
    there = (trainer.out / "checkpoints").exists()
    steps = hook.manager(trainer).steps() if hook is not None and there else []
    if steps and not resume:
        rule = "a run begins in a directory without checkpoints"
        fix = f"--resume, or trainer.out={trainer.out}-2"
        raise TrainError(f"beginning a run in {trainer.out}", f"a checkpoint of step {steps[-1]:,}", rule, fix)
    saved = trainer.out / "config.yaml"
    if not steps or not saved.exists():
        return
    operation = f"resuming the run in {trainer.out}"
    rule = "a run is resumed with the model that its checkpoints are of"
    before, after = (
        _saved.resolve_config(_saved.read_saved(saved), str(saved)),
        _saved.resolve_config(config, "the configuration"),
    )  # nothing is called
    part = before.get("trainer")
    if not isinstance(part, dict) or "model" not in part:
        fix = f"restore it, or remove it, if the checkpoints are of this model: rm {saved}"
        raise TrainError(operation, f"{saved} without a trainer.model", rule, fix)
    others = _config.changes(part["model"], after["trainer"].get("model"), "trainer.model")
    if others:
        fix = f"{others[0].split(':')[0]}={others[0].split(': ')[1].split(' → ')[0]}"
        raise TrainError(operation, "; ".join(others), rule, fix)
    for line in () if evaluates else _config.changes(before, after):
        trainer.write_text(f"changed since the run was begun: {line}")


def run(options: argparse.Namespace) -> None:
    """Execute a command line.

    Raises:
        SbpjaxError: the parts of the run do not fit.
    """
    config = configure(options)
    if options.memory is not None:
        with flow.abstract():
            print(report_step_estimate(build_trainer(config)))
        return
    trainer = build_trainer(config, fast=options.fast_dev_run)
    if options.explain:
        explain(trainer)
        return
    resume = options.resume or options.eval_only or int(os.environ.get("RESTART_COUNT", "0")) > 0
    out = trainer.out
    if out is not None and out.exists() and not out.is_dir():
        raise TrainError(
            f"beginning a run in {out}", "a file", "a run has a directory of its own", f"trainer.out={out}-run"
        )
    try:
        if out is not None and not options.eval_only:
            trainer.lock()  # leave files alone that another run is writing
        if out is not None:
            run_on_rank_0(f"looking into {out}", lambda: check_directory(trainer, config, resume, options.eval_only))
        if options.eval_only:
            evaluate(trainer)
            return
        if out is not None:
            run_on_rank_0(f"writing the configuration into {out}", lambda: _config.save_config(config, out))
        if resume and any(isinstance(hook, Checkpoints) for hook in trainer.hooks):
            there = trainer.resume()
            trainer.write_text(_start_text(trainer, config) if there else "no checkpoint yet: from the start")
        interrupt = StopOnInterrupt()
        trainer.hooks.insert(0, interrupt)
        trainer.fit()
        if interrupt.interrupted:
            print(_stop_text(trainer), flush=True)
            sys.exit(_INTERRUPTED)
    finally:
        trainer.unlock()


def _start_text(trainer: Trainer, config: Any) -> str:
    """Return what a resumed run does."""
    if trainer.step < trainer.max_steps:
        return f"resumed at step {trainer.step:,}"
    text = f"nothing to do: the run is at step {trainer.step:,}, and max_steps is {trainer.max_steps:,}"
    written = _lazy.OmegaConf.to_container(config, resolve=False)["trainer"]
    if not isinstance(written, dict) or "max_steps" not in written:  # a function of the user's makes the trainer
        return text
    name = re.fullmatch(r"\$\{(\w+)\}", str(written["max_steps"]))
    return f"{text}; pass {name[1] if name else 'trainer.max_steps'}={trainer.step + trainer.max_steps}, for example"


def _stop_text(trainer: Trainer) -> str:
    """Return how an interrupted run continues."""
    if trainer.out is None or not any(isinstance(hook, Checkpoints) for hook in trainer.hooks):
        return f"step {trainer.step:,} was not saved: the run has no Checkpoints among hooks"
    return f"step {trainer.step:,} is saved in {trainer.out}; to continue, repeat the command with --resume"


def explain(trainer: Trainer) -> None:
    """Print the communication of a step."""
    arguments, named = trainer.abstract_batch()
    print(trainer.train_step.explain(*arguments, check=False, **named))
    if trainer.options.auto:
        print(trainer.train_step.auto_parallel_report(against=()))


def evaluate(trainer: Trainer) -> None:
    """Print the metrics of the latest checkpoint, as one line of JSON.

    Raises:
        TrainError: there is no checkpoint, or nothing to evaluate.
    """
    if not any(isinstance(hook, Evaluation) for hook in trainer.hooks):
        fix = "trainer.hooks = {'validation': LazyCall(Evaluation)(data)}"
        raise TrainError("--eval-only", "no Evaluation among hooks", "an evaluation has its data", fix)
    if not trainer.resume(show_changes=False):
        rule = "a checkpoint of the run is evaluated"
        raise TrainError("--eval-only", f"no checkpoint in {trainer.out}", rule, "train first, or trainer.out=RUN")
    found = {"step": trainer.step, **trainer.evaluate()}
    if env.get_rank() == 0:
        print(json.dumps(found))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    options = parser().parse_intermixed_args(arguments)
    try:
        env.init()
        run(options)
    except SbpjaxError as error:
        if full_tracebacks():
            raise
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        if full_tracebacks():
            raise
        print("interrupted", file=sys.stderr)
        sys.exit(_INTERRUPTED)
