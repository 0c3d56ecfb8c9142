"""Every family trains alike under every mesh: with the losses of one device, and in the layouts of the table.

Twenty steps, with all options of a step: `tests/train/test_families.py`.
"""

import numpy as np
import pytest

from sbpjax import models, sbp
from sbpjax.models.parallelize import Layouts
from tests.models.cases import TRAINED, losses

TOLERANCE = 1e-5  # relative, float32 sums in another order
STEPS = 3  # 20 in tests/train/test_families.py
MESHES = {
    "dp": {"data": 4},
    "tp": {"tensor": 4},
    "fsdp": {"fsdp": 4},
    "2d": {"data": 2, "tensor": 2},
    "3d": {"data": 2, "fsdp": 2, "tensor": 2},
    "uneven": {"tensor": 3},
    "pp": {"pipeline": 2},
    "pp3d": {"data": 2, "tensor": 2, "pipeline": 2},
    "ep": {"expert": 4},
    "ep_dp": {"data": 2, "expert": 2},
    "ep_tp": {"expert": 2, "tensor": 2},
    "ep3d": {"fsdp": 2, "expert": 2, "tensor": 2},
}
CASES = [(case, mesh) for case in TRAINED for mesh in MESHES if "expert" not in MESHES[mesh] or "mixtral" in case]


@pytest.fixture(scope="module")
def alone():
    """Return the losses of one device, computed once."""
    known = {}

    def of(case, steps, micro_batches=1):
        if (case, steps, micro_batches) not in known:
            known[case, steps, micro_batches] = losses(case, models.Parallel(device="cpu"), steps, micro_batches)[0]
        return known[case, steps, micro_batches]

    return of


def micro_batches(mesh):
    return 4 if "pipeline" in MESHES[mesh] else 1


@pytest.mark.parametrize("case, mesh", CASES)
def test_losses_are_those_of_one_device(case, mesh, alone):
    spec = models.Parallel(**MESHES[mesh], device="cpu")
    found, model, _ = losses(case, spec, STEPS, micro_batches(mesh))
    np.testing.assert_allclose(found, alone(case, STEPS, micro_batches(mesh)), rtol=TOLERANCE)
    layouts = Layouts(model, spec).of
    for name, parameter in model.named_parameters():  # an update leaves them where they were
        assert (parameter.placement, list(parameter.sbp)) == layouts[name], name


@pytest.mark.parametrize("stage", [1, 3])
def test_zero_on_a_mesh_of_data_and_tensor(stage, alone):
    spec = models.Parallel(data=2, tensor=2, device="cpu")
    found, model, _ = losses("llama", spec, STEPS, stage=stage)
    np.testing.assert_allclose(found, alone("llama", STEPS), rtol=TOLERANCE)
    assert list(model.head.weight.sbp) == [sbp.broadcast, sbp.split(0)]
