"""Directories of OneFlow: `data/oneflow` was written by OneFlow 0.9.0 itself; crafted ones run and import nothing."""

import argparse
import collections
import datetime
import pathlib
import pickle
import shutil
import sys
import types
from fractions import Fraction

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import CheckpointError

WRITTEN = pathlib.Path(__file__).parent / "data" / "oneflow"


@pytest.fixture(scope="module")
def found():
    return flow.load(WRITTEN)


def test_a_module_and_its_optimizer(found):
    model = flow.nn.Linear(3, 2)
    model.load_state_dict(found["model"])
    weight = [[-0.04363565891981125, 0.007207043468952179, 0.14847856760025024]]
    np.testing.assert_array_equal(model.weight.detach().numpy()[:1], np.array(weight, np.float32))
    assert type(found["model"]["weight"]) is flow.nn.Parameter and type(found["parameter"]) is flow.nn.Parameter
    assert type(found["model"]) is collections.OrderedDict
    moment = np.array([0.10000002384185791, 0.20000004768371582, 0.30000007152557373], np.float32)
    np.testing.assert_array_equal(found["optimizer"]["state"][0]["exp_avg"].numpy()[1], moment)
    assert found["optimizer"]["param_groups"][0]["_options"]["betas"] == (0.9, 0.999)


def test_tensors_of_all_dtypes(found):
    assert set(found["dtypes"]) == {"float16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool"}
    for name, x in found["dtypes"].items():
        assert (
            x.dtype == getattr(flow, name)
            and x.shape == (1, 3)
            and x.tolist() == flow.tensor([[1, 0, 3]]).to(x.dtype).tolist()
        )
    assert found["scalar"].shape == () and found["scalar"].item() == 3 and found["empty"].shape == (0, 3)


def test_plain_values(found):
    minus_three = datetime.timezone(datetime.timedelta(hours=-3))
    expected = {
        "step": 300, "loss": 0.25, "flags": (True, None), "names": ["a", "é"], "bytes": b"\x00\xff", "complex": 1 - 2j,
        "set": {1, "a"}, "frozen": frozenset({2}), "path": pathlib.PurePosixPath("/a/b"), "number": np.float32(0.5),
        "dates": [
            datetime.date(2026, 11, 23), datetime.datetime(2026, 11, 23, 5, 6, 7, 89),
            datetime.datetime(2026, 1, 1, tzinfo=minus_three), datetime.timedelta(days=-1, microseconds=3),
            datetime.time(4, 5),
        ],
        "options": argparse.Namespace(lr=0.1, betas=(0.9, 0.99)), "names2": types.SimpleNamespace(x=1),
        "counts": collections.Counter("aab"), "ordered": collections.OrderedDict([("b", 1), ("a", 2)]),
        "many": collections.defaultdict(list, a=[1]), "size": flow.Size([2, 3]), "dtype": flow.float16,
        "placement": flow.placement("cpu", [0]), "keys": {1: 2, (1, 2): 3, None: 4}, "large": 10**30,
        "sbp": (flow.sbp.split(1), flow.sbp.broadcast, flow.sbp.partial_sum), "range": range(3),
        "slice": slice(1, None),
        "np dtype": np.dtype("int8"),
    }  # fmt: skip
    for name, value in expected.items():
        assert found[name] == value and type(found[name]) is type(value), name
    assert found["many"]["new"] == []
    assert found["array"].dtype == np.int16 and found["array"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found["fortran"].tolist() == [[0, 1], [2, 3]] and found["strings"].tolist() == ["é", "abc"]


def test_where_tensors_go():
    place = flow.placement("cpu", [0, 1])
    for options, where in (
        ({"map_location": place, "global_src_rank": 0}, place),
        ({"map_location": place}, place),
        ({"global_src_rank": 1}, flow.placement("cpu", [1])),
    ):
        x = flow.load(WRITTEN, **options)["model"]["weight"]
        assert x.placement == where and type(x) is flow.nn.Parameter
    assert flow.load(WRITTEN, map_location="cpu:1")["scalar"].device == "cpu:1"


def test_what_was_read_is_saved_again(found, tmp_path):
    flow.save(found, tmp_path / "c")
    again = flow.load(tmp_path / "c")
    assert again["options"] == found["options"] and list(again) == list(found)
    np.testing.assert_array_equal(again["model"]["bias"].numpy(force=True), found["model"]["bias"].numpy(force=True))


class _Call:
    def __init__(self, function, *arguments):
        self._call = function, arguments

    def __reduce__(self):
        return self._call


class Mine:
    pass


def crafted(tmp_path, data, **folders):
    path = tmp_path / "c"
    path.mkdir()
    (path / "pickled_data").write_bytes(pickle.dumps({"protocol_version": 1, "data": data}, 4))
    for name, (meta, out) in folders.items():
        (path / name).mkdir()
        (path / name / "meta").write_text(meta)
        (path / name / "out").write_bytes(out)
    return path


@pytest.mark.parametrize(
    "value, words",
    [
        (_Call(print, "run"), "builtins.print"), (_Call(eval, "1/0"), "builtins.eval"), (Mine(), "Mine"),
        (_Call(getattr, "a", "upper"), "builtins.getattr"), (Fraction(1, 2), "fractions.Fraction"),
        (_Call(pathlib.PosixPath, 3), "UnpicklingError"), (_Call(datetime.date, [1]), "UnpicklingError"),
        (_Call(range, "a"), "UnpicklingError"), (np.array([None]), "Error"),
    ],
    ids=range(9),
)  # fmt: skip
def test_a_pickle_runs_and_imports_nothing(value, words, tmp_path, capsys):
    path, before = crafted(tmp_path, {"a": value}), set(sys.modules)
    with pytest.raises(CheckpointError) as raised:
        flow.load(path)
    assert words in str(raised.value) and "\n  fix:  " in str(raised.value)
    assert capsys.readouterr().out == "" and set(sys.modules) == before


FLOATS = "shape {\n  dim: 2\n}\ndata_type: kFloat\n"


def tensor_in(folder):
    """Return the pickle of a tensor in a folder, as OneFlow writes it."""
    text = pickle.dumps({"protocol_version": 1, "data": {"path": folder}}, 4)
    name = b"\x8c\x07oneflow\x8c\x06Tensor\x93)\x81"
    return text.replace(b"\x8c\x04data\x94}\x94", b"\x8c\x04data\x94" + name + b"}\x94").replace(b"su.", b"sbu.")


@pytest.mark.parametrize(
    "folder, meta, out",
    [
        ("t", FLOATS, bytes(7)), ("t", FLOATS, bytes(9)), ("t", FLOATS.replace("kFloat", "kOFRecord"), bytes(8)),
        ("t", FLOATS.replace("2", "-2"), bytes(8)), ("t", FLOATS.replace("2", str(1 << 49)), bytes(8)),
        ("t", "", bytes(8)),
        ("../t", FLOATS, bytes(8)), ("/tmp", FLOATS, bytes(8)), (".", FLOATS, bytes(8)), ("missing", FLOATS, bytes(8)),
    ],
    ids=range(10),
)  # fmt: skip
def test_tensors_that_their_files_do_not_hold(folder, meta, out, tmp_path):
    path = crafted(tmp_path, None, t=(meta, out))
    (path / "pickled_data").write_bytes(tensor_in(folder))
    with pytest.raises(CheckpointError):
        flow.load(path)


def test_the_crafted_pickle_is_a_tensor(tmp_path):
    path = crafted(tmp_path, None, t=(FLOATS, np.array([1, 2], np.float32).tobytes()))
    (path / "pickled_data").write_bytes(tensor_in("t"))
    assert flow.load(path).tolist() == [1, 2]


def test_damage(tmp_path):
    path = tmp_path / "c"
    shutil.copytree(WRITTEN, path)
    kept = (path / "pickled_data").read_bytes()
    for at in range(0, len(kept), 7):  # OneFlow keeps no checksums: a flip may give other values, and nothing worse
        (path / "pickled_data").write_bytes(kept[:at] + bytes([kept[at] ^ 0x55]) + kept[at + 1 :])
        try:
            flow.load(path)
        except CheckpointError:
            pass
        (path / "pickled_data").write_bytes(kept[:at])
        with pytest.raises(CheckpointError):
            flow.load(path)
