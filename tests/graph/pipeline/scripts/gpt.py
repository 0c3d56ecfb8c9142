"""Run by test_processes.py on several processes: the GPT example in two stages has the curve of one device."""

import sys
from dataclasses import replace

import numpy as np

import sbpjax as flow
from examples.gpt import data, train
from examples.gpt.model import GPTConfig

rank, ranks = flow.env.get_rank(), flow.env.get_world_size()
steps, layers = int(sys.argv[1]), int(sys.argv[2])
options = train.Options(
    steps=steps,
    batch=8,
    lr=1e-2,
    warmup=2,
    accumulate=2,
    eval_batches=1,
    model=GPTConfig(context=16, layers=layers, heads=4, width=32, dropout=0.1),
)
corpus = data.load_corpus(seed=options.seed)


def curve(**chosen):
    trainer = train.Trainer(replace(options, **chosen), corpus)
    return [trainer.advance().item() for _ in range(steps)]


found = curve(layout="2d", pipeline=2)
np.testing.assert_allclose(found, curve(layout="single"), rtol=2e-5)
print(f"rank {rank} of {ranks} passed")
