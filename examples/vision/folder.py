"""Any model of the zoo on your own photos, ``ROOT/train/CLASS/*.jpg`` and ``ROOT/val/CLASS/*.jpg``. See README.md."""

from examples.vision.recipe import Freeze, adamw, classifier, rise_and_fall
from sbpjax import models
from sbpjax.train import Average, Checkpoints, Evaluation, Trainer
from sbpjax.train.config import LazyCall
from sbpjax.train.data import ImageFolder
from sbpjax.train.evaluation import Accuracy

seed = 0
model = "resnet50"
root = "photos"
classes = 1000
options = None  # fields of the model's configuration: options.image_size=64
checkpoint = None  # a file of weights to begin with, of timm for instance
trained_classes = 1000  # of the model in that file
backbone_lr_scale = 1.0  # rate of the parameters from that file, relative to the fresh classifier's
freeze_steps = 0  # steps in which those parameters are frozen
size = 224
batch = 64
samples = 1_000_000  # of all epochs together
steps = 15_000  # samples / batch; the length of the run
every = 1000  # steps between evaluations, and between checkpoints
trainer = LazyCall(Trainer)(
    model=LazyCall(classifier)(
        "${model}",
        "${classes}",
        checkpoint="${checkpoint}",
        trained_classes="${trained_classes}",
        options="${options}",
    ),
    optimizer=LazyCall(adamw, partial=True)(lr=1e-3, weight_decay=0.05, backbone_lr_scale="${backbone_lr_scale}"),
    schedule=LazyCall(rise_and_fall)("${steps}"),
    data=LazyCall(ImageFolder)(root="${root}/train", size="${size}", samples="${samples}", augment=True),
    batch_size="${batch}",
    max_steps="${steps}",
    workers=4,
    parallel=LazyCall(models.Parallel)(data=1),
    options={"amp": None, "accumulate": 1, "zero": 0},
    hooks={
        "freeze": LazyCall(Freeze)(steps="${freeze_steps}"),
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
