"""SSD300 on generated shapes in COCO's format, judged by pycocotools. See README.md."""

from examples.vision.detector import CocoScores, SmallSSD, detections
from examples.vision.recipe import Curves
from examples.vision.shapes import shapes
from sbpjax import models, optim
from sbpjax.train import Checkpoints, Evaluation, TargetMetric, Trainer
from sbpjax.train.config import LazyCall

seed = 0
steps = 300
folder = "runs/shapes"
trainer = LazyCall(Trainer)(
    model=LazyCall(SmallSSD)(width=8),
    optimizer=LazyCall(optim.AdamW, partial=True)(lr=2e-3, weight_decay=1e-4),
    schedule=LazyCall(optim.lr_scheduler.warmup_cosine)(warmup=30, total="${steps}", final=0.01),
    data=LazyCall(shapes)(directory="${folder}", part="train", count=800, augment=True),
    batch_size=16,
    max_steps="${steps}",
    parallel=LazyCall(models.Parallel)(data=8, device="cpu"),
    hooks={
        "held_out": LazyCall(Evaluation)(
            data=LazyCall(shapes)(directory="${folder}", part="held_out", count=96),
            evaluator=LazyCall(CocoScores)(annotations="${folder}/held_out.json"),
            predict=detections,
            every=100,
            name="held_out",
        ),
        "checkpoints": LazyCall(Checkpoints)(every=50, keep_last=1),
        "curves": LazyCall(Curves)(title="shapes", score="held_out/mAP@50"),
        "goal": LazyCall(TargetMetric)(metric="held_out/mAP@50", at_least=0.5),  # a run got 0.587
    },
    out="runs/detection",
)
