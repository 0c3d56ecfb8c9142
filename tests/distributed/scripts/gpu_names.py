"""A program of PyTorch that requires GPUs: data parallel by rank, a mesh of GPUs, parts by DTensor; on CPUs."""

import os

import sbpjax as flow

RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def main():
    import torch
    from torch import nn
    from torch.distributed._tensor.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    assert torch.accelerator.is_available() and torch.accelerator.device_count() == torch.cuda.device_count() == RANKS
    device = torch.device(f"{torch.accelerator.current_accelerator()}:{RANK}")
    torch.accelerator.set_device_index(RANK)
    torch.distributed.init_process_group(torch.distributed.get_default_backend_for_device(device), device_id=device)
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 2).to(RANK), device_ids=[RANK])
    x = torch.arange(8.0 * RANKS).reshape(2 * RANKS, 4)
    model(x.chunk(RANKS)[RANK].to(device)).mean().backward()
    alone = nn.Linear(4, 2).cuda()
    alone.load_state_dict(model.module.state_dict())
    alone(x.cuda()).mean().backward()
    assert torch.allclose(model.module.weight.grad, alone.weight.grad)

    layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4)).to("cuda")
    before = layers(x.cuda()).detach()
    mesh = init_device_mesh("cuda", (RANKS,))
    layers = parallelize_module(layers, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    assert torch.allclose(layers(x.cuda()), before, atol=1e-5)
    torch.distributed.destroy_process_group()
    print(f"rank {RANK} of {RANKS} passed", flush=True)


if __name__ == "__main__":
    with flow.mock_torch.enable():
        main()
