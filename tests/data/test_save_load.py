"""Checkpoints: what goes in comes out, in any layout; complete or not there; no code is read."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import utils
from sbpjax.errors import CheckpointError, PlacementError, StateDictError


def test_round_trip(tmp_path):
    state = {
        "step": 3,
        "nested": {"list": [1, 2.5, None, True, "text"], "tuple": (1, flow.arange(3))},
        "numbers": {0: flow.ones(2), 1: flow.zeros((), dtype=flow.int64)},
        "array": np.arange(4, dtype=np.int16),
        "scalar": np.float32(0.5),
        "types": {
            str(d): flow.arange(4).to(d) for d in (flow.bfloat16, flow.float16, flow.float64, flow.bool, flow.uint8)
        },
        "empty": flow.zeros(0, 3),
    }
    utils.save(state, tmp_path / "c")
    found = utils.load(tmp_path / "c")
    assert found["step"] == 3 and found["nested"]["list"] == [1, 2.5, None, True, "text"]
    assert isinstance(found["nested"]["tuple"], tuple) and found["nested"]["tuple"][1].tolist() == [0, 1, 2]
    assert (
        list(found["numbers"]) == [0, 1] and found["numbers"][1].dtype == flow.int64 and found["numbers"][1].ndim == 0
    )
    assert found["array"].dtype == np.int16 and found["scalar"] == 0.5
    for name, tensor in state["types"].items():
        assert found["types"][name].dtype == tensor.dtype and found["types"][name].tolist() == tensor.tolist()
    assert found["empty"].shape == (0, 3)


@pytest.mark.parametrize("sbp", ["S0", "S1", "B", "P"])
def test_a_tensor_is_stored_by_its_logical_value(sbp, tmp_path):
    value = np.random.default_rng(0).standard_normal((5, 6)).astype(np.float32)
    tensor = flow.tensor(value).to_global(flow.placement("cpu", [0, 1, 2, 3]), sbp)
    utils.save({"x": tensor}, tmp_path / "c")
    found = utils.load(tmp_path / "c")["x"]
    assert not found.is_global
    np.testing.assert_array_equal(found.numpy(), value)


def test_saving_again_replaces_and_a_failure_leaves_the_old_one(tmp_path):
    utils.save({"step": 1}, tmp_path / "c")
    utils.save({"step": 2}, tmp_path / "c")
    with pytest.raises(CheckpointError) as caught:
        utils.save({"step": 3, "model": [object()]}, tmp_path / "c")
    assert "seen: model/0 is a object" in str(caught.value) and "state_dict()" in str(caught.value)
    assert utils.load(tmp_path / "c") == {"step": 2}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c"]


def test_the_state_is_taken_once(tmp_path):
    class Counted(flow.nn.Linear):
        taken = 0

        def state_dict(self, *args, **options):
            Counted.taken += 1
            return super().state_dict(*args, **options)

    module = Counted(2, 3)
    flow.save({"model": module}, tmp_path / "one")
    assert Counted.taken == 1
    assert (flow.load(tmp_path / "one")["model"]["weight"] == module.weight).all()


def test_an_interrupted_replacement_reads_the_old_one(tmp_path):
    utils.save({"step": 1}, tmp_path / "c")
    (tmp_path / "c").rename(tmp_path / "c.old")  # what stands there between the two renames of a save
    assert utils.load(tmp_path / "c") == {"step": 1}


def test_nothing_there(tmp_path):
    with pytest.raises(CheckpointError, match="no such directory"):
        utils.load(tmp_path / "c")


@pytest.mark.parametrize("sbp", ["S0", "S1", "B", "P"])
def test_global_tensors_come_back_as_asked_for(sbp, tmp_path):
    value = np.random.default_rng(0).standard_normal((5, 6)).astype(np.float32)
    here = flow.placement("cpu", [0, 1, 2, 3])
    utils.save({"x": flow.tensor(value).to_global(here, sbp), "n": 1}, tmp_path / "c", global_dst_rank=0)
    grid = flow.placement("cpu", [[0, 1], [2, 3]])
    one = utils.load(tmp_path / "c", global_src_rank=2)["x"]
    all_of_them = utils.load(tmp_path / "c", grid)["x"]
    assert one.placement == flow.placement("cpu", [2]) and one.sbp == (flow.sbp.broadcast,)
    assert all_of_them.placement == grid and all_of_them.sbp == (flow.sbp.broadcast, flow.sbp.broadcast)
    for found in (one, all_of_them, utils.load(tmp_path / "c", "cpu:1")["x"]):
        np.testing.assert_array_equal(found.numpy(), value)
    assert utils.load(tmp_path / "c", "cpu:1")["x"].device == "cpu:1"


def test_a_checkpoint_loads_into_a_global_module_without_a_whole_copy_on_every_rank(tmp_path):
    placement = flow.placement("cpu", [0, 1, 2, 3])
    source = flow.nn.Linear(8, 8)
    target = flow.nn.Linear(8, 8).to_global(placement, flow.sbp.split(0))
    utils.save(source.state_dict(), tmp_path / "c")
    with pytest.raises(StateDictError, match="weight is local in the state and global in the module"):
        target.load_state_dict(utils.load(tmp_path / "c"))
    target.load_state_dict(utils.load(tmp_path / "c", global_src_rank=0))
    assert target.weight.sbp == (flow.sbp.split(0),) and target.weight.placement == placement
    np.testing.assert_array_equal(target.weight.numpy(force=True), source.weight.numpy(force=True))


def test_a_place_that_is_none_is_refused(tmp_path):
    utils.save({"x": flow.ones(2)}, tmp_path / "c")
    with pytest.raises(TypeError, match="map_location is a device or a placement"):
        utils.load(tmp_path / "c", map_location=3)


@pytest.mark.parametrize(
    "options, where",
    [
        ({"map_location": "cpu", "global_src_rank": 1}, [1]),
        ({"map_location": flow.device("cpu"), "global_src_rank": 1}, [1]),
        ({"map_location": flow.placement("cpu", [0, 1]), "global_src_rank": 0}, [0, 1]),
        ({"global_src_rank": 1}, [1]),
        ({"map_location": "cpu"}, None),
    ],
    ids=str,
)
def test_map_location_beside_a_rank(options, where, tmp_path):
    """As OneFlow 0.9 has it: a rank makes tensors global, on the placement if one is given."""
    utils.save({"x": flow.ones(2), "p": flow.nn.Parameter(flow.zeros(2), requires_grad=False)}, tmp_path / "c")
    found = utils.load(tmp_path / "c", **options)
    x = found["x"]
    assert (
        type(found["p"]) is flow.nn.Parameter and not found["p"].requires_grad and found["p"].is_global == x.is_global
    )
    assert x.tolist() == [1, 1] and x.is_global == (where is not None)
    assert where is None or (x.placement == flow.placement("cpu", where) and x.sbp == (flow.sbp.broadcast,))


def test_ranks_that_are_not_there(tmp_path):
    with pytest.raises(PlacementError):
        utils.save({"x": flow.ones(2)}, tmp_path / "c", global_dst_rank=99)
    assert not (tmp_path / "c").exists()
    utils.save({"x": flow.ones(2)}, tmp_path / "c")
    with pytest.raises(PlacementError):
        utils.load(tmp_path / "c", global_src_rank=99)


def test_files_of_pytorch_load_too(tmp_path):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    model, file = (
        torch.nn.Linear(3, 2),
        tmp_path / f"m{flow.env.get_rank()}.pt",
    )  # of several processes each has its own
    torch.save({"model": model.state_dict(), "step": 3, "more": [torch.tensor([1, 2]), None]}, file)
    state = flow.load(file)
    assert state["step"] == 3 and state["more"][0].tolist() == [1, 2] and state["more"][0].dtype == flow.int64
    ours = flow.nn.Linear(3, 2)
    ours.load_state_dict(state["model"])
    np.testing.assert_array_equal(ours.weight.detach().numpy(), model.weight.detach().numpy())
    place = flow.placement("cpu", [0, 1])
    assert flow.load(file, place)["model"]["weight"].placement == place
    with pytest.raises(CheckpointError):
        flow.load(file, support_pytorch_format=False)


@pytest.mark.parametrize("where", [None, "cpu", flow.placement("cpu", [0, 1])])
def test_a_file_of_safetensors_loads_too(where, tmp_path):
    state = {"w": flow.randn(3, 4), "b": flow.ones(3).bfloat16()}
    flow.checkpoint.save_safetensors(state, tmp_path / "model.safetensors")
    found = flow.load(tmp_path / "model.safetensors", map_location=where)
    assert list(found) == ["b", "w"] or list(found) == ["w", "b"]
    for name, value in state.items():
        assert found[name].dtype == value.dtype and found[name].is_global == isinstance(where, flow.placement)
        assert np.array_equal(found[name].float().numpy(), value.float().numpy())
    assert where != "cpu" or found["w"].device == flow.device("cpu")


def test_a_damaged_file_of_safetensors(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 64)
    with pytest.raises(CheckpointError, match=r"reading '.*model.safetensors'"):
        flow.load(tmp_path / "model.safetensors")


@pytest.mark.parametrize("ending", ["pth", "pt", "bin"])
def test_weights_only_as_in_pytorch(ending, tmp_path):
    torch = pytest.importorskip("torch", reason="needs PyTorch, which writes the file")
    torch.save({"w": torch.arange(3.0)}, tmp_path / f"model.{ending}")
    for options in ({}, {"weights_only": True}, {"weights_only": False}, {"map_location": "cpu", "weights_only": True}):
        assert flow.load(tmp_path / f"model.{ending}", **options)["w"].tolist() == [0.0, 1.0, 2.0]
