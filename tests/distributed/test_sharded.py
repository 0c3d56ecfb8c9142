"""PyTorch's sharded programs (device meshes, DTensor, parallel styles, FSDP2, distributed checkpoints)."""

import pytest

import sbpjax as flow
from tests.distributed.running import passed
from tests.distributed.scripts import sharded


def test_one_process_with_eight_devices_gives_the_losses_of_one_device(tmp_path):
    assert sharded.main(str(tmp_path / "state"), devices=8) == (0, 1)


@pytest.mark.exhaustive
def test_four_processes_give_the_losses_of_one_device(tmp_path):
    passed("sharded.py", 4, 1, str(tmp_path / "state"))


@pytest.mark.exhaustive
def test_a_program_for_gpus_runs_on_cpus():
    passed("gpu_names.py", 2, 1, SBPJAX_CUDA="cpu")


@pytest.fixture
def torch():
    with flow.mock_torch.enable():
        import torch
        import torch.distributed.tensor
        import torch.distributed.tensor.parallel

        yield torch


def test_a_mesh_is_a_placement_and_its_slices_are_rows(torch):
    mesh = torch.distributed.init_device_mesh("cpu", (2, 4), mesh_dim_names=("dp", "tp"))
    assert mesh.placement == flow.placement("cpu", [[0, 1, 2, 3], [4, 5, 6, 7]])
    assert mesh["tp"].placement == flow.placement("cpu", [0, 1, 2, 3]) and mesh["tp"].get_local_rank() == 0
    assert mesh["dp"].placement == flow.placement("cpu", [0, 4]) and mesh.get_coordinate() == [0, 0]
    assert mesh["tp", "dp"].shape == (4, 2) and mesh.size(1) == 4 and mesh["dp", "tp"] is mesh
    with pytest.raises(KeyError, match="Invalid mesh_dim_name pp"):
        mesh["pp"]
    with pytest.raises(RuntimeError, match="needs the name of one"):
        mesh.get_local_rank()


def test_placements_are_sbp_and_their_errors_say_so(torch):
    tensor = torch.distributed.tensor
    mesh = torch.distributed.init_device_mesh("cpu", (2, 4))
    x = tensor.zeros(4, 8, device_mesh=mesh, placements=[tensor.Replicate(), tensor.Shard(-1)])
    assert x.sbp == (flow.sbp.broadcast, flow.sbp.split(1)) and x.device_mesh == mesh
    y = tensor.DTensor.from_local(torch.ones(4, 8), mesh, [tensor.Partial(), tensor.Replicate()])
    assert y.placements == (tensor.Partial(), tensor.Replicate()) and y.full_tensor().sum() == 32
    with pytest.raises(ValueError, match="same length as `device_mesh.ndim`"):
        tensor.distribute_tensor(torch.ones(4), mesh, [tensor.Shard(0)])
    with pytest.raises(TypeError, match="a placement is Shard"):
        tensor.distribute_tensor(torch.ones(4), mesh, [0, 1])
    assert repr(y.placements) == "(Partial(sum), Replicate())"
    with pytest.raises(ValueError, match="a pending reduction is sum, avg, max, min, product"):
        tensor.Partial("band")


def test_pending_reductions_other_than_sums_are_computed_from_the_parts(torch):
    tensor, results = torch.distributed.tensor, {"avg": 2.5, "max": 4.0, "min": 1.0, "product": 24.0, "sum": 10.0}

    @flow.simulate(ranks=4)
    def main():
        mesh = torch.distributed.init_device_mesh("cpu", (4,))
        grid = torch.distributed.init_device_mesh("cpu", (2, 2))
        x = torch.full((3,), flow.env.get_rank() + 1.0)
        found = {op: tensor.DTensor.from_local(x, mesh, [tensor.Partial(op)]).full_tensor() for op in results}
        assert all((found[op] == results[op]).all() for op in results)
        rows = tensor.DTensor.from_local(x, grid, [tensor.Partial("max"), tensor.Shard(0)])
        assert rows.full_tensor().tolist() == [3.0] * 3 + [4.0] * 3
        again = rows.redistribute(placements=[tensor.Partial("avg"), tensor.Replicate()])
        assert again.placements == (tensor.Replicate(), tensor.Replicate()) and again.sum() == 21.0

    main()


def test_functional_collectives_return_new_tensors_with_gradients(torch):
    import torch.distributed._functional_collectives as collectives
    import torch.distributed.nn as across

    @flow.simulate(ranks=4)
    def main():
        rank, mesh = flow.env.get_rank(), torch.distributed.init_device_mesh("cpu", (2, 2))
        x = (torch.arange(4.0) + rank).requires_grad_()
        whole = collectives.wait_tensor(collectives.all_gather_tensor_autograd(x, 0, mesh.get_group(1)))
        assert whole.tolist() == [i + r for r in (rank // 2 * 2, rank // 2 * 2 + 1) for i in range(4)]
        whole.sum().backward()
        assert x.grad.tolist() == [2.0] * 4
        y = x.detach()
        assert collectives.all_reduce(y, "sum", (mesh, 1)).tolist() == [4.0 * (rank // 2) + 1 + 2 * i for i in range(4)]
        assert collectives.reduce_scatter_tensor(y, "avg", 0, [0, 1, 2, 3]).tolist() == [rank + 1.5]
        assert collectives.all_to_all_single(y, None, [1] * 4, None).tolist() == [r + rank for r in range(4)]
        assert collectives.broadcast(y, 2, None).tolist() == [2.0, 3.0, 4.0, 5.0]
        assert collectives.permute_tensor(y, [1, 2, 3, 0], None)[0] == (rank - 1) % 4
        with pytest.raises(ValueError, match="have one size"):
            collectives.all_to_all_single(y, None, [0, 1, 1, 2], None)
        rows = list(y.unbind())
        assert across.all_to_all(None, rows)[3] == 3 + rank and across.reduce_scatter(None, rows) == 6 + 4 * rank
        assert across.scatter(rows, 1) == 1 + rank and across.reduce(y, 2)[0] == (6 if rank == 2 else rank)
        assert across.gather(y, 1)[3][0] == (3 if rank == 1 else 0) and across.all_reduce(y)[0] == 6

    main()


def test_local_targets_beside_logits_split_by_classes(torch):
    tensor = torch.distributed.tensor
    mesh = torch.distributed.init_device_mesh("cpu", (8,))
    scores, targets = torch.arange(64.0).reshape(4, 16).sin(), torch.tensor([3, 0, 15, 7])
    logits = tensor.distribute_tensor(scores, mesh, [tensor.Shard(1)]).requires_grad_()
    with pytest.raises(RuntimeError, match="all inputs of one op are local"):
        torch.nn.functional.cross_entropy(logits, targets)
    with tensor.parallel.loss_parallel():
        loss = torch.nn.functional.cross_entropy(logits, targets)
        loss.backward()
    scores.requires_grad_()
    wanted = torch.nn.functional.cross_entropy(scores, targets)
    wanted.backward()
    assert torch.allclose(loss.full_tensor(), wanted) and torch.allclose(logits.grad.full_tensor(), scores.grad)
    with tensor.experimental.implicit_replication():
        assert torch.equal((logits * torch.ones(4, 16)).full_tensor(), scores)


def test_a_plan_that_fits_nothing_warns_and_a_grid_is_refused(torch):
    parallel = torch.distributed.tensor.parallel
    mesh = torch.distributed.init_device_mesh("cpu", (2, 4), mesh_dim_names=("dp", "tp"))
    model = torch.nn.Sequential(torch.nn.Linear(2, 4))
    with pytest.warns(UserWarning, match="no submodule fits 'head'"):
        parallel.parallelize_module(model, mesh["tp"], {"head": parallel.ColwiseParallel()})
    with pytest.raises(RuntimeError, match="a mesh of one axis"):
        parallel.parallelize_module(model, mesh, {"0": parallel.ColwiseParallel()})


def test_inputs_and_outputs_of_a_module_are_laid_out(torch):
    tensor, parallel = torch.distributed.tensor, torch.distributed.tensor.parallel
    mesh = torch.distributed.init_device_mesh("cpu", (8,))
    seen = []

    class Block(torch.nn.Module):
        def forward(self, x, scale=None):
            seen.append((x.placements, scale.placements))
            return x * scale

    style = parallel.PrepareModuleInputOutput(
        input_layouts=tensor.Shard(0),
        desired_input_layouts=tensor.Replicate(),
        input_kwarg_layouts={"scale": tensor.Replicate()},
        desired_input_kwarg_layouts={"scale": tensor.Shard(0)},
        output_layouts=tensor.Shard(0),
        desired_output_layouts=tensor.Replicate(),
    )
    block = parallel.parallelize_module(Block(), mesh, style)
    out = block(torch.arange(8.0), scale=torch.full((8,), 2.0))
    assert seen == [((tensor.Replicate(),), (tensor.Shard(0),))]
    assert not out.is_global and torch.equal(out, torch.arange(8.0) * 2)
