"""`Trainer`: training loop over a model, an optimizer, data and a device mesh.

    trainer = Trainer(
        model=GPT2(config),
        optimizer=functools.partial(optim.AdamW, lr=3e-4, weight_decay=0.1),
        data=PackedTokens("data/pages", 1024, samples=10_000 * 32),
        batch_size=32,
        max_steps=10_000,
        parallel=Parallel(data=2, tensor=4, pipeline=2),
        schedule=optim.lr_scheduler.warmup_cosine(500, 10_000, final=0.1),
        hooks=[Evaluation(held_out, every=500), Checkpoints(every=500)],
        out="run7",
    )
    trainer.fit()

A step is one compiled program (`step.py`). Everything else is done by hooks (`hooks/`) between the steps, in plain
Python:

    batch = next batch     →  before_step  →  loss = train_step(batch), step += 1  →  after_step

Nothing in this loop waits for the devices: `Log` reads a loss when the next step is dispatched.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import sbpjax as flow
from sbpjax import amp, env, models, nn, optim
from sbpjax.errors import PlacementError, TrainError, nearest
from sbpjax.models import Parallel
from sbpjax.models.parallelize import Sharding, sharding_of
from sbpjax.utils.host import explain_arguments

from . import batches, optimizer_options
from .checks import check_batch, check_data, check_kinds, check_loss, check_tokens
from .compressed_gradients import CompressedGradients
from .disk import run_on_rank_0
from .gradient_guard import GradientGuard, GuardMonitor
from .hooks import Checkpoints, Evaluation, Hook, Log, Snapshots
from .local_updates import Replicas
from .run_lock import RunLock
from .step import Loss, StepOptions, TrainStep, call, inputs_of
from .writers import JsonLines, Writer, console_writer

Groups = list[dict[str, Any]]


def parameter_groups(model: nn.Module) -> Groups:
    """Return the groups of a model's parameters: matrices, and the rest without weight decay.

    Example:
        >>> [len(group["params"]) for group in flow.train.parameter_groups(flow.nn.Linear(2, 3))]
        [1, 1]
    """
    vector = 2 if isinstance(model, Replicas) else 1  # dims: those of replicas are stacked
    matrices = [p for p in model.parameters() if p.requires_grad and p.ndim > vector]
    others = [p for p in model.parameters() if p.requires_grad and p.ndim <= vector]
    groups: Groups = [{"params": matrices}, {"params": others, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


@explain_arguments
class Trainer:
    """Train a model.

    Args:
        model: with local parameters, alike in all processes, or already laid out on the mesh. A model in evaluation
            mode, as `models.from_pretrained` returns it, is set to training mode.
        optimizer: made of the model's parameters, or a function of `parameter_groups` that makes one.
        data: a dataset, a `DataLoader` or a `GlobalLoader`; samples are tuples ``(inputs, targets, …)``, or dicts with
            the names of the arguments of ``model.loss``. A dataset that is not `Numbered` is shuffled.
        max_steps: the number of steps of the run, those before a resume included.
        batch_size: samples of a batch over all devices; needed with a dataset.
        parallel: the mesh, or its fields as a dict; one device by default.
        sharding: the model's table, see `models.parallelize`. By default that of its family; a model without one is
            copied to all ranks of a mesh that divides the batch alone.
        schedule: of the learning rate: its factor as a function of the step, or an `LRScheduler` of `optimizer`.
        loss: ``loss(model, *batch)``, or ``loss(model, **batch)`` for dicts; ``model.loss`` by default. A dict of
            losses is summed. With the default, the methods ``check_data(dataset)`` and ``check_batch(batch)`` of a
            model, if any, are called, the second for each batch while it is on the host: they check for errors that a
            compiled step cannot report, such as labels that are no class.
        guard: skips steps with invalid gradients; False for none. By default those with NaN or infinities; for float16
            with a loss scaler.
        hooks: called between steps in this order, but averages first and checkpoints last; a list, or a dict with
            names.
        writers: the outputs of metrics; by default a bar or lines on stdout, and ``metrics.jsonl`` in `out`.
        out: the run's directory; without it nothing is written.
        log_every: steps between two records of the loss.
        workers: processes that fetch data.
        target_stage: of a pipeline: which stage reads the targets, -1 for the last; by default that of the table.
        options: how the step is computed: AMP, accumulation, clipping, ZeRO, …; a `StepOptions`, or its fields as a
            dict.

    Attributes:
        step: how many steps were done.
        loss: of the last step, or one per micro-batch; it may still be computing.
        metrics: the latest value of every metric.
        train_step: the graph of a step.
        loader: the global batches.

    Raises:
        TrainError: the parts do not fit each other.
        PlacementError: mesh and model do not fit; see `models.parallelize`.
    """

    def __init__(
        self,
        *,
        model: nn.Module,
        optimizer: optim.Optimizer | Callable[[Groups], optim.Optimizer],
        data: Any,
        max_steps: int,
        batch_size: int | None = None,
        parallel: Parallel | Mapping[str, Any] | None = None,
        sharding: Sharding | None = None,
        schedule: Any = None,
        loss: Loss | None = None,
        guard: GradientGuard | bool | None = None,
        hooks: Sequence[Hook] | Mapping[str, Hook] = (),
        writers: Sequence[Writer] | None = None,
        out: str | Path | None = None,
        log_every: int = 10,
        workers: int = 0,
        target_stage: int | None = None,
        options: StepOptions | Mapping[str, Any] | None = None,
    ):
        check_kinds(model, optimizer, data, max_steps)
        check_loss(model, loss)
        check_tokens(model, data)
        if loss is None:  # another loss may have labels of another kind
            check_data(model, data)
        self.parallel: Parallel = _make_dataclass(Parallel, parallel, "parallel")
        self.options: StepOptions = _make_dataclass(StepOptions, options, "options")
        self.model, self.max_steps = model, max_steps
        self.evaluated_model = model
        self.out = None if out is None else Path(out)
        self._target_stage = target_stage
        self._inputs = inputs_of(model.forward)
        self.loss_function = loss
        self.sharding = lay_out(model, self.parallel, sharding, auto=self.options.auto)
        self.optimizer: optim.Optimizer = (
            optimizer if isinstance(optimizer, optim.Optimizer) else optimizer(parameter_groups(model))
        )
        self._made_with = self._made_before = optimizer_options.made_with(self.optimizer)
        self.schedule = schedule if schedule is None or hasattr(schedule, "step") else self._make_lambda_lr(schedule)
        self.guard = self._guard() if guard is None else guard or None
        check = None if loss is not None else getattr(model, "check_batch", None)
        is_abstract = any(p.is_meta for p in model.parameters())  # an estimate: nothing will run
        self.loader = batches.global_loader(
            data, batch_size, self.parallel, workers, self.batch_sbp, check, only_sizes=is_abstract
        )
        self.batch_size: int = self.loader.loader.batch_size or batch_size or 0
        check_batch(self.batch_size, self.parallel, self.options)
        if not model.training:
            model.train()
        self.train_step = TrainStep(
            model, self.optimizer, self.schedule, loss, self.guard, self.options, self._blocks()
        )
        monitor = [GuardMonitor(self.guard, log_every)] if isinstance(self.guard, GradientGuard) else []
        self.hooks: list[Hook] = [Log(log_every), *monitor, *sorted(_list_hooks(hooks), key=lambda hook: hook.order)]
        self.writers = list(writers) if writers is not None else [console_writer(), JsonLines()]
        self._lock: RunLock | None = None
        self._is_open, self._waiting = False, []  # whether the writers are, and the metrics that wait for that
        self.step, self.data_s = 0, 0.0
        self.batch: Any = None
        self.loss: Any = None
        self.metrics: dict[str, float] = {}
        self.tokens_per_step = 0
        for hook in self.hooks:
            hook.set_up(self)
        self._stop: str | None = None

    def _make_lambda_lr(self, factor: Callable[[int], float]) -> Any:
        return optim.lr_scheduler.LambdaLR(self.optimizer, factor)

    def _guard(self) -> GradientGuard:
        return GradientGuard(scaler=amp.GradScaler() if self.options.amp == "float16" else None)

    def _blocks(self) -> list[nn.Module]:
        """Return the modules that are checkpointed one by one."""
        given = "blocks" if self.sharding is None else self.sharding.blocks
        names = (given,) if isinstance(given, str) else given
        modules = dict(self.model.named_modules())
        if self.options.checkpointing and not all(name in modules for name in names):
            seen = f"{type(self.model).__name__} without {', '.join(names)}"
            rule = "the blocks are module lists of the model"
            raise TrainError("Trainer(options=StepOptions(checkpointing=True))", seen, rule, "checkpointing=False")
        return [block for name in names if name in modules for block in modules[name].children()]

    # -- the loop ----

    def fit(self) -> dict[str, float]:
        """Train up to `max_steps`, or until a hook stops the run; return the metrics. All processes call it."""
        self._open()
        try:
            for hook in self.hooks:
                hook.before_run(self)
            before = [hook.before_step for hook in self.hooks if _has(hook, "before_step")]
            after = [hook.after_step for hook in self.hooks if _has(hook, "after_step")]
            stream = self._stream()
            while self.step < self.max_steps and self._stop is None:
                begin_s = time.perf_counter()
                self.batch = next(stream)
                self.data_s += time.perf_counter() - begin_s
                for do in before:
                    do(self)
                self.loss = call(self.train_step, self.batch)
                self.step += 1
                for do in after:
                    do(self)
        finally:
            self._close()
        return self.metrics

    def _stream(self) -> Iterator[Any]:
        """Iterate over the data again and again."""
        while True:
            for batch in self.loader:
                if not self.tokens_per_step:
                    first = batches.find_first_tensor(batch)
                    whole = not first.dtype.is_floating_point and first.ndim == 2
                    self.tokens_per_step = first.numel() if whole else 0
                yield self.to_stages(batch)

    def stop(self, reason: str) -> None:
        """End the run after the current step; all processes call it in the same step."""
        self._stop = reason
        self.write_text(f"stopped at step {self.step:,}: {reason}")

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called in this run."""
        return self._stop is not None

    def evaluate(self) -> dict[str, float]:
        """Return the metrics of all evaluations of the model in its present state."""
        found: dict[str, float] = {}
        for hook in self.hooks:
            if isinstance(hook, Evaluation):
                found |= hook.run(self)
        return found

    def report_evaluation(self, metrics: dict[str, float]) -> None:
        """Pass the metrics of an evaluation to hooks and writers."""
        for hook in self.hooks:
            hook.after_evaluation(self, metrics)
        self.record(metrics, self.step)

    # -- for hooks ----

    def to_stages(self, batch: Any) -> Any:
        """Move the targets of a batch to the pipeline stage that reads them."""
        return batches.to_stages(batch, self.parallel, self._inputs, self.target_stage)

    def abstract_batch(self) -> tuple[list[Any], dict[str, Any]]:
        """Return a batch without data, as arguments of `train_step`, for compiling its programs."""
        loader = self.loader.loader
        sample = loader.collate_fn([loader.dataset[0]])
        with flow.abstract():
            batch = self.to_stages(batches.enlarge_batch(sample, self.batch_size, self.parallel, self.batch_sbp))
        if isinstance(batch, Mapping):
            return [], dict(batch)
        return (list(batch) if isinstance(batch, (list, tuple)) else [batch]), {}

    @property
    def batch_sbp(self) -> tuple[Any, ...]:
        """Layout of a batch: split over data and fsdp; whole where the planner chooses, which may split it for free."""
        return tuple([flow.sbp.broadcast] * len(self.parallel.axes) if self.options.auto else self.parallel.batch)

    @property
    def target_stage(self) -> int:
        """Stage that reads the targets: the last, or 0 where the output matrix is the embedding."""
        if self._target_stage is not None:
            return self._target_stage
        stages = self.sharding.tail_modules(getattr(self.model, "config", None)) if self.sharding else {}
        return -1 if -1 in stages.values() else 0

    def record(self, metrics: dict[str, float], step: int | None = None) -> None:
        """Pass metrics to the writers, when these are open, and store them as the latest."""
        self.metrics |= metrics
        record = (self.step if step is None else step), metrics
        if not self._is_open:
            self._waiting.append(record)
            return
        for writer in self._rank_writers():
            writer.write(*record)

    def write_text(self, text: str) -> None:
        """Pass a line of text to the writers."""
        for writer in self._rank_writers():
            writer.write_text(text)

    def _rank_writers(self) -> list[Writer]:
        return self.writers if env.get_rank() == 0 else []

    def lock(self) -> None:
        """Take the lock of the run's directory, which `fit` releases; all processes call it.

        Raises:
            TrainError: a live run holds the lock, or the directory cannot be made.
        """
        if self.out is not None:
            self._lock = self._lock or RunLock(self.out)
            run_on_rank_0(f"locking {self.out}", self._lock.take)

    def unlock(self) -> None:
        """Release the lock of the run's directory."""
        if self._lock is not None:
            self._lock.release()

    def _open(self) -> None:
        self._stop = None
        self.lock()
        try:
            run_on_rank_0("opening the writers", self._open_writers)
        except BaseException:
            self.unlock()
            raise
        self._is_open, waiting, self._waiting = True, self._waiting, []
        for record in waiting:
            for writer in self._rank_writers():
                writer.write(*record)

    def _open_writers(self) -> None:
        opened: list[Writer] = []
        try:
            for writer in self._rank_writers():
                opened.append(writer)
                writer.open(self.out, self.step, self.max_steps)
        except BaseException:
            for writer in opened:  # a bar gives the terminal back
                with contextlib.suppress(Exception):
                    writer.close()
            raise

    def _close(self) -> None:
        """Close every hook and writer, and raise the first error of one of them."""
        errors: list[Exception] = []
        ends: list[Callable[[], None]] = [lambda h=hook: h.after_run(self) for hook in self.hooks]
        try:
            for end in [*ends, *(writer.close for writer in self._rank_writers())]:
                try:
                    end()
                except Exception as error:
                    errors.append(error)
        finally:
            self._is_open = False
            self.unlock()
        if errors:
            raise errors[0]

    # -- going on later ----

    def state(self) -> dict[str, Any]:
        """Return the whole state of the run, for `checkpoint.save` and `checkpoint.load(into=)`."""
        found = {"model": self.model, "optimizer": self.optimizer, "run": _Position(self)}
        if self.schedule is not None:
            found["schedule"] = self.schedule
        if self.guard is not None:
            found["guard"] = self.guard
        return found

    def resume(self, step: int | None = None, *, show_changes: bool = True) -> bool:
        """Restore the latest checkpoint of `out`, or a later snapshot; return whether there is one.

        All processes call it. Options of the optimizer that were changed since the checkpoint (``lr``,
        ``weight_decay``) are taken as this run has them; the others keep their values at the checkpoint's step.

        Args:
            step: the step of another checkpoint instead.
            show_changes: print the changed options; an evaluation does not use them.

        Raises:
            CheckpointError: the checkpoint is damaged, or of another model.
        """
        hook = next((hook for hook in self.hooks if isinstance(hook, Checkpoints)), None)
        if hook is None:
            rule = "checkpoints are written by a hook"
            raise TrainError("trainer.resume()", "no Checkpoints among hooks", rule, "hooks=[Checkpoints(every=500)]")
        snapshots = next((hook for hook in self.hooks if isinstance(hook, Snapshots)), None)
        if self.out is not None and not (self.out / "checkpoints").exists() and snapshots is None:
            return False
        manager = hook.manager(self)
        is_snapshot = snapshots is not None and step is None and snapshots.restore(self, manager.latest() or 0)
        if not is_snapshot and manager.restore(step, into=self.state()) is None:
            return False
        changed = optimizer_options.take_changed(self.optimizer, self.schedule, self._made_before, self._made_with)
        for line in changed if show_changes else ():
            self.write_text(f"changed since the checkpoint: {line}")
        return True


class _Position:
    """Progress of a run, as a part of its state."""

    def __init__(self, trainer: Trainer):
        self.trainer = trainer

    def state_dict(self) -> dict[str, Any]:
        trainer = self.trainer
        return {
            "step": trainer.step,
            "data": trainer.loader.state_dict(),
            "random": flow.get_rng_state().tolist(),
            "metrics": dict(trainer.metrics),
            "optimizer": trainer._made_with,
            "hooks": {hook.name: state for hook in trainer.hooks if (state := hook.state_dict())},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        trainer = self.trainer
        trainer.step, trainer.metrics = state["step"], dict(state["metrics"])
        trainer._made_before = state.get("optimizer", [])
        trainer.loader.load_state_dict(state["data"])
        flow.set_rng_state(flow.tensor(np.array(state["random"])))
        for hook in trainer.hooks:
            if hook.name in state["hooks"]:
                hook.load_state_dict(state["hooks"][hook.name])


def lay_out(model: nn.Module, spec: Parallel, sharding: Sharding | None, *, auto: bool = False) -> Sharding | None:
    """Distribute a model over a mesh by its table; without one, copy it to each rank.

    Args:
        model: the model.
        spec: the mesh.
        sharding: the table, None for that of the family.
        auto: leave the layouts to the planner.

    Returns:
        The table.

    Raises:
        PlacementError: there is no table, and the mesh divides more than the batch.
    """
    if auto:
        model.to_global(spec.placement, [flow.sbp.broadcast] * len(spec.axes))
        return None
    if isinstance(model, (Replicas, CompressedGradients)):
        return model.lay_out(spec, sharding)
    if sharding is None:
        try:
            sharding = sharding_of(model)
        except PlacementError:
            if spec.data != spec.devices:
                raise
            model.to_global(spec.placement, [flow.sbp.broadcast] * len(spec.axes))
            return None
    models.parallelize(model, spec, sharding)
    return sharding


def _make_dataclass(kind: Any, given: Any, name: str) -> Any:
    """Return a dataclass from fields given as a dict."""
    if isinstance(given, kind):
        return given
    known = [field.name for field in dataclasses.fields(kind)]
    for field in given or {}:
        if field not in known:
            near = nearest(field, known)
            fix = f"{name}={{{near!r}: …}}" if near else "leave it out"
            raise TrainError(f"Trainer({name}=...)", f"{field!r}", f"{kind.__name__} has {', '.join(known)}", fix)
    return kind(**(given or {}))


def _list_hooks(hooks: Sequence[Hook | None] | Mapping[str, Hook | None]) -> list[Hook]:
    """Return the hooks of a list, or of a dict by name, without those that an override has set to null."""
    return [hook for hook in (hooks.values() if isinstance(hooks, Mapping) else hooks) if hook is not None]


def _has(hook: Hook, method: str) -> bool:
    return getattr(type(hook), method) is not getattr(Hook, method)
