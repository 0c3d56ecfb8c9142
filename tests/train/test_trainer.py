"""A run is the loop that one would write by hand: the same losses under every mesh, and behind a resume."""

import functools

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import models, nn, optim
from sbpjax.errors import PlacementError, TrainError
from sbpjax.train import Checkpoints, Evaluation, Hook, StepOptions, Trainer, parameter_groups
from sbpjax.utils.data import DataLoader
from tests.train.cases import TOWER, Points, Tower, losses, records, trainer

TOLERANCE = 1e-5  # relative, float32 sums in another order
MESHES = {
    "data": {"data": 4},
    "3d": {"data": 2, "fsdp": 2, "tensor": 2},
    "pipeline": {"data": 2, "tensor": 2, "pipeline": 2},
}


def by_hand(steps, drop=0.0):
    """Return the losses of a loop without a trainer."""
    flow.manual_seed(3)
    model = Tower(drop)
    optimizer = optim.AdamW(parameter_groups(model), lr=1e-2, weight_decay=0.1)
    schedule = optim.lr_scheduler.LambdaLR(optimizer, optim.lr_scheduler.warmup_cosine(2, steps, final=0.1))
    points, found = Points(40), []
    for step in range(steps):
        batch = [points.sample((step * 8 + i) % 40) for i in range(8)]
        loss = model.loss(*(flow.tensor(np.stack(part)) for part in zip(*batch, strict=True)))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        found.append(loss.item())
    return found


@pytest.fixture(scope="module")
def alone():
    return by_hand(6)


def test_losses_are_those_of_a_loop_by_hand(alone, tmp_path):
    metrics = trainer(tmp_path).fit()
    np.testing.assert_allclose(list(losses(tmp_path).values()), alone, rtol=TOLERANCE)
    assert metrics["loss"] == pytest.approx(alone[-1], rel=TOLERANCE)


@pytest.mark.parametrize("mesh", MESHES)
def test_losses_do_not_depend_on_the_mesh(mesh, alone, tmp_path):
    options = StepOptions(accumulate=2 if mesh == "pipeline" else 1)
    made = trainer(tmp_path, parallel=models.Parallel(**MESHES[mesh], device="cpu"), options=options)
    made.fit()
    np.testing.assert_allclose(list(losses(tmp_path).values()), alone, rtol=TOLERANCE)
    assert made.target_stage == -1  # as the table says


@pytest.mark.parametrize(
    "options", [StepOptions(zero=3), StepOptions(accumulate=4), StepOptions(checkpointing=True)], ids=str
)
def test_losses_do_not_depend_on_how_a_step_is_computed(options, alone, tmp_path):
    trainer(tmp_path, parallel=models.Parallel(data=2, device="cpu"), options=options).fit()
    np.testing.assert_allclose(list(losses(tmp_path).values()), alone, rtol=TOLERANCE)


def test_named_batches_and_a_loader_of_the_users(alone, tmp_path):
    named = DataLoader(Points(40, named=True), batch_size=8)
    trainer(tmp_path, data=named, batch_size=None).fit()
    np.testing.assert_allclose(list(losses(tmp_path).values()), alone, rtol=TOLERANCE)


def test_a_model_without_a_table_is_copied_to_the_ranks_of_data(tmp_path):
    model = nn.Linear(4, 4)
    parts = {"model": model, "optimizer": functools.partial(optim.SGD, lr=0.1), "data": Points(16), "batch_size": 8}
    loss = lambda model, x, y: nn.functional.mse_loss(model(x), y)  # noqa: E731
    Trainer(**parts, max_steps=2, loss=loss, parallel=models.Parallel(data=2, device="cpu"), writers=[]).fit()
    assert model.weight.sbp == (flow.sbp.broadcast,)
    with pytest.raises(PlacementError, match="no SHARDING"):
        Trainer(**parts, max_steps=2, loss=loss, parallel=models.Parallel(tensor=2, device="cpu"))


@pytest.mark.parametrize("mesh", [{}, {"data": 2, "tensor": 2}], ids=["same", "other"])
def test_a_resumed_run_goes_on_as_if_nothing_had_happened(mesh, tmp_path):
    """With dropout, a schedule, an epoch that ends on the way, and random orders."""
    data = [Points(40).sample(i) for i in range(40)]  # a list is shuffled anew in every epoch
    hooks = lambda: [Evaluation(data, every=3), Checkpoints(every=2, keep_last=None)]  # noqa: E731
    whole = trainer(tmp_path, steps=8, drop=0.3, data=data, hooks=hooks())
    whole.fit()
    once = records(tmp_path)
    again = trainer(
        tmp_path, steps=8, drop=0.3, data=data, hooks=hooks(), parallel=models.Parallel(**mesh, device="cpu")
    )
    assert again.resume(4) and again.step == 4 and again.metrics["validation/loss"] == once[3]["validation/loss"]
    again.fit()
    twice = records(tmp_path)
    assert list(twice) == list(once) == list(range(1, 9))
    for step in once:
        for name in ("loss", "lr", "validation/loss"):
            expected = once[step].get(name)
            if mesh and expected is not None:
                expected = pytest.approx(expected, rel=TOLERANCE)
            assert twice[step].get(name) == expected, (step, name)


def test_nothing_is_read_before_the_next_step_is_handed_out(tmp_path):
    seen = []

    class Look(Hook):
        def after_step(self, trainer):
            seen.append((trainer.step, len(losses(tmp_path))))

    trainer(tmp_path, steps=4, hooks=[Look()]).fit()
    assert seen == [(1, 0), (2, 1), (3, 2), (4, 3)] and len(losses(tmp_path)) == 4


def test_a_hook_stops_the_run(tmp_path):
    class Stop(Hook):
        def after_step(self, trainer):
            if trainer.step == 2:
                trainer.stop("enough")

    made = trainer(tmp_path, hooks=[Stop()])
    made.fit()
    assert made.step == 2 and list(losses(tmp_path)) == [1, 2]


def test_an_error_of_a_hook_ends_the_run_with_what_was_written_closed(tmp_path):
    class Fail(Hook):
        def after_step(self, trainer):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        trainer(tmp_path, hooks=[Fail()]).fit()
    assert list(losses(tmp_path)) == [1]


@pytest.mark.parametrize(
    ("chosen", "seen", "fix"),
    [
        ({"steps": 0}, "max_steps=0", "max_steps=1000"),
        ({"batch_size": None}, "batch_size=None", "batch_size=32"),
        ({"batch_size": 41}, "40 samples, batch_size=41", "more samples"),
        ({"parallel": models.Parallel(data=3, device="cpu")}, "batch_size=8", "batch_size=6"),
        ({"data": DataLoader(Points(8), batch_size=8)}, "batch_size=8", "leave batch_size out"),
    ],
)
def test_parts_that_do_not_fit(chosen, seen, fix):
    with pytest.raises(TrainError) as error:
        trainer(**chosen)
    assert f"seen: {seen}" in str(error.value) and f"fix:  {fix}" in str(error.value)


def test_resuming_needs_checkpoints(tmp_path):
    with pytest.raises(TrainError, match=r"hooks=\[Checkpoints\(every=500\)\]"):
        trainer(tmp_path).resume()
    assert not trainer(tmp_path, hooks=[Checkpoints()]).resume()  # there is none


def test_groups_without_weight_decay():
    groups = parameter_groups(Tower())
    assert [p.ndim for p in groups[0]["params"]] == [2] * 4 and groups[1]["weight_decay"] == 0.0
    assert TOWER.blocks == "blocks"


def test_a_model_of_a_script_needs_no_table(monkeypatch, tmp_path):
    monkeypatch.setattr(Tower, "__module__", "__main__")
    made = trainer(tmp_path, sharding=None)
    made.fit()
    assert made.sharding is None and made.step == 6


def test_a_model_without_a_loss_is_refused():
    with pytest.raises(TrainError, match=r"(?s)Linear without a method loss.*fix: +loss=lambda model, x, y"):
        Trainer(model=nn.Linear(4, 4), optimizer=optim.AdamW, data=Points(8), batch_size=8, max_steps=1)


@pytest.mark.parametrize("training", [False, True])
def test_a_model_in_evaluation_mode_is_trained_in_training_mode(training):
    model = Tower(0.5).train(training)
    last = list(model.modules())[-1].eval()  # a part that stays so, as a frozen batch norm does
    made = Trainer(
        model=model, optimizer=functools.partial(optim.AdamW, lr=1e-2), data=Points(40), max_steps=2, batch_size=8,
        parallel=models.Parallel(device="cpu"), sharding=TOWER, writers=[],
    )  # fmt: skip
    assert made.model.training and last.training is not training
