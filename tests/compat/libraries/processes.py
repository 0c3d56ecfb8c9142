"""Trainer and Accelerator over the processes of a launcher: the losses of one process with the whole batch.

python -m sbpjax.distributed.launch --nproc_per_node 2 --cpu_devices 1 -m tests.compat.libraries.processes 8

The argument is the batch of all processes together. Rank 0 prints the losses as JSON.
"""

import json
import os
import sys
import tempfile


def trainer(batch):
    """Return the losses of six steps of BERT, with dynamic padding."""
    from tests.compat.libraries.language import _bert, _logged, _Rows, _trainer

    with tempfile.TemporaryDirectory() as folder:
        made = _trainer(_bert(), folder, _Rows(24, None), steps=6, batch=batch)
        made.train()
    return _logged(made)


def loop(batch):
    """Return the losses of accelerate's loop, gathered, and a digest of the weights."""
    import torch
    from accelerate import Accelerator
    from torch.nn import functional as F

    from tests.compat.libraries.kit import digest, fill, integers, tensor

    accelerator = Accelerator(cpu=True)
    model = fill(torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.GELU(), torch.nn.Linear(16, 3)))
    data = torch.utils.data.TensorDataset(tensor("rows", 32, 6), integers("labels", 3, 32))
    loader = torch.utils.data.DataLoader(data, batch_size=batch)
    model, optimizer, loader = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=0.01), loader)
    losses = []
    for _ in range(2):
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(accelerator.gather(loss.detach()).mean().item())
    return losses + digest(accelerator.unwrap_model(model)[0].weight)


def main(batch):
    """Print the losses."""
    batch //= int(os.environ.get("WORLD_SIZE", 1))
    found = {"loop": loop(batch), "trainer": trainer(batch)}
    if int(os.environ.get("RANK", 0)) == 0:
        print("LOSSES " + json.dumps(found), flush=True)


if __name__ == "__main__":
    from sbpjax import mock_torch

    with mock_torch.enable():
        main(int(sys.argv[1]))
