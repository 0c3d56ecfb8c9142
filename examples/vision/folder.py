"""Any model of the zoo on your own photos, ``ROOT/train/CLASS/*.jpg`` and ``ROOT/val/CLASS/*.jpg``. See README.md."""

from examples.vision.recipe import classifier, rise_and_fall
from sbpjax import models, optim
from sbpjax.train import Average, Checkpoints, Evaluation, Trainer
from sbpjax.train.config import LazyCall
from sbpjax.train.data import ImageFolder
from sbpjax.train.evaluation import Accuracy

seed = 0
model = "resnet50"
root = "photos"
classes = 1000
checkpoint = None  # a file of weights to begin with, of timm for instance
size = 224
batch = 64
samples = 1_000_000  # of all epochs together
steps = 15_000  # samples / batch; the length of the run
every = 1000  # steps between evaluations, and between checkpoints
trainer = LazyCall(Trainer)(
    model=LazyCall(classifier)("${model}", "${classes}", checkpoint="${checkpoint}"),
    optimizer=LazyCall(optim.AdamW, partial=True)(lr=1e-3, weight_decay=0.05),
    schedule=LazyCall(rise_and_fall)("${steps}"),
    data=LazyCall(ImageFolder)(root="${root}/train", size="${size}", samples="${samples}", augment=True),
    batch_size="${batch}",
    max_steps="${steps}",
    workers=4,
    parallel=LazyCall(models.Parallel)(data=1),
    options={"amp": None, "accumulate": 1, "zero": 0},
    hooks={
        "average": LazyCall(Average)(decay=0.999, warm_up=True),
        "validation": LazyCall(Evaluation)(
            data=LazyCall(ImageFolder)(root="${root}/val", size="${size}", shuffle=False),
            evaluator=LazyCall(Accuracy)(k=[1, 5]),
            every="${every}",
        ),
        "checkpoints": LazyCall(Checkpoints)(
            every="${every}", keep_last=2, keep_best=1, metric="validation/accuracy", better="max"
        ),
    },
    out="runs/${model}",
)
