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
    with pytest.raises(ValueError, match="a pending reduction is a sum"):
        tensor.Partial("max")


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
