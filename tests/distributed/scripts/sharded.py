"""PyTorch's sharded programs on several ranks: tensor parallel, fully sharded, both, with a checkpoint; `main()`.

Every rank trains the same small model undivided beside it, and compares the losses.
"""

import sys

import sbpjax

LIMIT = 1e-5


def train(torch, model, rows, steps=2, optimizer=None):
    """Return the losses of a few steps on some rows of batches that all ranks draw alike."""
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=0.1)
    losses = []
    for step in range(steps):
        torch.manual_seed(step)
        x = torch.rand(8, 6, 10)[rows]
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def main(folder, devices=0):
    with sbpjax.mock_torch.enable():
        import torch
        import torch.distributed.checkpoint as dcp
        from torch import distributed as dist
        from torch import nn
        from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
        from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
        from torch.distributed.tensor.parallel import (
            ColwiseParallel,
            RowwiseParallel,
            SequenceParallel,
            parallelize_module,
        )

        class Mlp(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm, self.relu = nn.LayerNorm(10), nn.ReLU()
                self.in_proj, self.out_proj = nn.Linear(10, 32), nn.Linear(32, 5)

            def forward(self, x):
                return self.out_proj(self.relu(self.in_proj(self.norm(x))))

        def build():
            torch.manual_seed(0)
            return Mlp()

        plan = {
            "norm": SequenceParallel(),
            "in_proj": ColwiseParallel(input_layouts=Shard(1)),
            "out_proj": RowwiseParallel(),
        }
        dist.init_process_group("gloo")
        rank, world = dist.get_rank(), dist.get_world_size()
        size = devices or world
        wanted = train(torch, build(), slice(None))

        def share(count, index):  # the rows of one of `count` data-parallel ranks
            return slice(None) if world == 1 else slice(8 * index // count, 8 * (index + 1) // count)

        def compare(losses):
            mean = torch.tensor(losses)
            dist.all_reduce(mean)
            assert torch.allclose(mean / world, torch.tensor(wanted), atol=LIMIT), (losses, wanted)

        mesh = init_device_mesh("cpu", (size,))
        whole = torch.arange(16.0).reshape(8, 2)
        x = distribute_tensor(whole, mesh, [Shard(0)])
        assert isinstance(x, DTensor) and not isinstance(whole, DTensor) and x.placements == (Shard(0),)
        assert torch.equal(x.full_tensor(), whole) and x.redistribute(placements=[Replicate()]).shape == (8, 2)
        assert x.to_local().shape[0] == (8 if world == 1 else 8 // size)

        model = parallelize_module(build(), mesh, plan)
        assert model.in_proj.weight.placements == (Shard(0),) and model.out_proj.weight.placements == (Shard(1),)
        compare(train(torch, model, slice(None)))

        model = build()
        fully_shard(model.in_proj)
        fully_shard(model)
        assert isinstance(model, FSDPModule) and isinstance(model, Mlp)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        compare(train(torch, model, share(world, rank), optimizer=optimizer))
        compare_states(torch, dcp, folder, model, optimizer, StateDictOptions, get_state_dict, set_state_dict)

        grid = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("dp", "tp"))
        assert grid["tp"].size() == size // 2 and grid["dp"].mesh_dim_names == ("dp",)
        model = parallelize_module(build(), grid["tp"], plan)
        fully_shard(model, mesh=grid["dp"])
        assert model.in_proj.weight.placements == (Shard(0), Shard(0))
        compare(train(torch, model, share(2, grid["dp"].get_local_rank())))

        with torch.device("meta"):
            model = Mlp()
        fully_shard(model, mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32))
        model.to_empty(device="cpu")
        model.load_state_dict({k: distribute_tensor(v, mesh, [Shard(0)]) for k, v in build().state_dict().items()})
        model.unshard()
        assert model.in_proj.weight.dtype == torch.bfloat16
        model.reshard()
        assert model.in_proj.weight.dtype == torch.float32 and model.in_proj.weight.placements == (Shard(0),)
        losses = train(torch, model, share(world, rank), steps=1)
        mean = torch.tensor(losses)
        dist.all_reduce(mean)
        assert torch.allclose(mean / world, torch.tensor(wanted[:1]), rtol=0.02)
        dist.destroy_process_group()
        return rank, world


def compare_states(torch, dcp, folder, model, optimizer, options, get_state_dict, set_state_dict):
    """Save a state, change it, and load it again: sharded by the directory, and whole by PyTorch's helpers."""
    before = {k: v.full_tensor() for k, v in model.state_dict().items()}
    states = get_state_dict(model, optimizer, options=options(full_state_dict=True))
    assert not any(v.is_global for v in states[0].values()) and "norm.weight" in states[1]["state"]
    dcp.save({"model": model, "optimizer": optimizer}, checkpoint_id=folder)
    for restore in ("directory", "helpers"):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()
        if restore == "directory":
            dcp.load({"model": model, "optimizer": optimizer}, checkpoint_id=folder)
        else:
            set_state_dict(model, optimizer, model_state_dict=states[0], optim_state_dict=states[1])
        for name, value in model.state_dict().items():
            assert value.is_global and torch.equal(value.full_tensor(), before[name]), name


if __name__ == "__main__":
    print("rank {} of {} passed".format(*main(sys.argv[1])))
