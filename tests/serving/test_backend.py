"""What runs inside Triton, with a stand-in of its module: arrays by DLPack, one wrong request among right ones."""

import json

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.serving import Repository
from sbpjax.serving.backend import TritonModel, array_of, tensor_of

from .support import exported


class Tensor:
    """Triton's tensor, which only DLPack goes into and out of."""

    def __init__(self, name, array):
        self.name, self.array = name, array

    @classmethod
    def from_dlpack(cls, name, given):
        return cls(name, np.from_dlpack(given).copy())

    def to_dlpack(self):
        return self.array.__dlpack__()

    def as_numpy(self):
        raise AssertionError("NumPy 2 reads other numbers by this")


class Utils:
    """`triton_python_backend_utils`."""

    Tensor = Tensor
    TritonError = str

    class InferenceResponse:
        def __init__(self, output_tensors, error=None):
            self.tensors, self.error = output_tensors, error

    @staticmethod
    def get_input_tensor_by_name(request, name):
        return request.get(name)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    wanted = exported(folder)
    (served,) = Repository(folder).models
    made = TritonModel(Utils, str(served.export(1)), served.engine)
    config = {"input": [{"name": "x"}], "output": [{"name": "output"}], "max_batch_size": 8}
    made.initialize({"model_config": json.dumps(config)})
    return wanted, made


def test_arrays_go_there_and_back():
    for array in (np.arange(6.0).reshape(2, 3), np.arange(6, dtype=np.int64)[::2], np.array([], np.float32)):
        assert (array_of(tensor_of(Utils, "x", array)) == array).all()
    assert array_of(tensor_of(Utils, "x", np.array([True, False]))).tolist() == [1, 0]


def test_a_batch_is_answered_request_by_request(model):
    wanted, served = model
    given = [np.random.default_rng(n).standard_normal((n, 6)).astype(np.float32) for n in (1, 2, 3)]
    answers = served.execute([{"x": Tensor("x", x)} for x in given])
    for x, answer in zip(given, answers, strict=True):
        assert answer.error is None
        np.testing.assert_allclose(answer.tensors[0].array, wanted(flow.tensor(x)).numpy(), rtol=1e-5, atol=1e-6)


def test_a_wrong_request_is_answered_alone(model):
    wanted, served = model
    right = np.ones((2, 6), np.float32)
    requests = [
        {"x": Tensor("x", right)},
        {},
        {"x": Tensor("x", np.ones((2, 5), np.float32))},
        {"x": Tensor("x", right)},
    ]
    first, nothing, narrow, last = served.execute(requests)
    assert "no input 'x'" in nothing.error and "GraphTypeError" in narrow.error
    for answer in (first, last):
        assert answer.error is None and answer.tensors[0].array.shape == (2, 3)
