"""Crafted ``.pth`` files: refused with a message, whichever reader they are given to."""

import collections
import copy
import io
import pickle
import random
import struct
import subprocess
import sys
import zipfile

import ml_dtypes
import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import errors
from sbpjax._core.compat.torch_names import serialization
from sbpjax.checkpoint import read_torch
from tests.data.checkpoint import pickles as p

READERS = [read_torch, flow.load, flow.checkpoint.load_torch, serialization.load]
NUMPY = p.call(p.name("torch", "Size"), p.several(p.integer(2)))


def refused(path, reader, words="reading|load"):
    with pytest.raises(errors.CheckpointError, match=words) as raised:
        reader(path)
    assert "\n  seen: " in str(raised.value) and "\n  rule: " in str(raised.value) and "\n  fix:  " in str(raised.value)


def nested(depth):
    return pickle.EMPTY_TUPLE + pickle.TUPLE1 * depth


def doubled(depth):
    return pickle.EMPTY_TUPLE + (pickle.BINPUT + b"\0" + pickle.BINGET + b"\0" + pickle.TUPLE2) * depth


def keyed(key):
    return pickle.EMPTY_DICT + key + pickle.NONE + pickle.SETITEM


OUTSIDE = {
    "view of a view": p.tensor(p.tensor(shape=(4000,), stride=(0,)), shape=(4000,)),
    "view of a view, large": p.tensor(p.tensor(shape=(4 * 10**7,), stride=(0,)), shape=(4 * 10**7,)),
    "view of a parameter": p.tensor(
        p.call(p.name("torch._utils", "_rebuild_parameter"), p.tensor(), pickle.NEWFALSE, pickle.EMPTY_DICT)
    ),
    "offset": p.tensor(offset=1),
    "negative offset": p.tensor(offset=-1),
    "negative stride": p.tensor(shape=(2,), stride=(-1,)),
    "strides that cancel": p.tensor(shape=(3, 3), stride=(2, -2)),
    "wrapping": p.tensor(offset=2**63, shape=(2**62, 3), stride=(4, 2**63)),
    "stride of another length": p.tensor(shape=(1,), stride=(1, 1)),
    "a truth as a size": p.tensor(shape=(pickle.NEWTRUE,)),
    "a float as a size": p.tensor(shape=(pickle.BINFLOAT + struct.pack(">d", 1.0),)),
    "a size beyond integers": p.tensor(shape=(0, 2**900), stride=(1, 1)),
    "expanded to a petabyte": p.tensor(shape=(10**7, 10**5), stride=(0, 0)),
    "expanded again and again": pickle.MARK + p.tensor(shape=(2**23,), stride=(0,)) * 300 + pickle.TUPLE,
    "a storage longer than its member": p.tensor(p.storage(count=1000), shape=(1000,)),
    "a storage of a terabyte": p.tensor(p.storage(count=2**38)),
    "a storage of minus one": p.tensor(p.storage(count=-1)),
    "one storage as two": p.tensor() + pickle.POP + p.tensor(p.storage(kind="CharStorage", count=4)),
    "one storage, two dtypes": p.several(p.tensor(), p.tensor(p.storage(kind="CharStorage", count=4))),
    "a member that is missing": p.tensor(p.storage(key="7")),
    "a member elsewhere": p.tensor(p.storage(key="../../b")),
    "a storage that is a string": p.tensor(p.text("abc")),
    "a persistent id that is none": p.text("storage") + pickle.BINPERSID,
    "bytes of a length alone": p.call(p.name("builtins", "bytearray"), p.integer(2**40)),
}
ALTERS = {
    "a dtype": p.built(p.name("torch", "float32"), pickle.NONE, p.mapping(name=p.text("int8"), itemsize=p.integer(1))),
    "Size": p.built(p.name("torch", "Size"), pickle.NONE, p.mapping(numel=p.name("torch", "device"))),
    "a shape": p.built(NUMPY, pickle.NONE, p.mapping(numel=pickle.NONE)),
    "a tensor": p.tensor() + p.mapping(_array=p.text("gotcha"), numpy=p.name("torch", "device")) + pickle.BUILD,
    "a function": p.built(p.name("torch._utils", "_rebuild_tensor_v2"), p.mapping(__defaults__=pickle.NONE)),
    "a storage": p.storage() + p.mapping(array=pickle.NONE) + pickle.BUILD,
    "a method of an OrderedDict": p.call(p.name("collections", "OrderedDict"))
    + p.mapping(items=p.name("torch", "device"))
    + pickle.BUILD,
    "a tensor's elements": p.tensor() + p.integer(0) + p.integer(7) + pickle.SETITEM,
    "a list in a tuple": pickle.EMPTY_TUPLE + pickle.NONE + pickle.APPEND,
}
RUNS = {
    "a system call": p.call(p.name("os", "system"), p.text("false")),
    "a method by its path": p.name("torch", "nn.Module.__init__"),
    "getattr": p.call(p.name("builtins", "getattr"), p.tensor(), p.text("numpy")),
    "a dtype that is called": p.call(p.name("torch", "float32"), p.tensor()),
    "the result that is called": p.call(p.tensor(), p.text("x")),
    "a new object": p.name("collections", "OrderedDict") + pickle.EMPTY_TUPLE + pickle.NEWOBJ,
    "a codec": p.call(p.name("_codecs", "encode"), p.text("x"), p.text("idna")),
    "an extension": pickle.EXT1 + b"\1",
    "an instance": pickle.MARK + pickle.INST + b"os\nsystem\n",
    "an old name": pickle.MARK + p.name("os", "system") + p.text("false") + pickle.OBJ,
}
HANGS = {
    "a deep key": keyed(nested(2 * 10**5)),
    "a key of 2**64 parts": keyed(doubled(64)),
    "a deep element": p.call(p.name("builtins", "set"), pickle.MARK + nested(2 * 10**5) + pickle.LIST),
    "a deep key of an OrderedDict": p.call(
        p.name("collections", "OrderedDict"), pickle.MARK + nested(2 * 10**5) + pickle.NONE + pickle.TUPLE
    ),
}
CRAFTED = OUTSIDE | ALTERS | RUNS | HANGS


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("body", CRAFTED)
def test_crafted_files_are_refused(body, reader, tmp_path):
    wrong = CRAFTED[body]
    before = flow.float32.name, flow.float32.itemsize, flow.ones(2, 3).shape.numel()
    refused(p.write(tmp_path / "x.pth", wrong), reader)
    assert (flow.float32.name, flow.float32.itemsize, flow.ones(2, 3).shape.numel()) == before


def test_a_refused_name_imports_nothing(tmp_path):
    for i, (module, what) in enumerate([("torch", "hub"), ("torch", "special"), ("this", "s"), ("torch", "fft.fft")]):
        p.write(tmp_path / f"{i}.pth", p.name(module, what))
    code = f"""
import glob, sys
import sbpjax as flow
from sbpjax._core.compat.torch_names import serialization
from sbpjax import errors, checkpoint
readers = [serialization.load, flow.load, checkpoint.read_torch]
before = None
for path in [{str(tmp_path / "0.pth")!r}, *sorted(glob.glob({str(tmp_path / "*.pth")!r}))]:  # the first makes ready
    for read in readers:
        try: read(path)
        except errors.CheckpointError as error: assert "its pickle names" in str(error)
        else: raise SystemExit("read")
    new = set(sys.modules) - (before or set())
    assert before is None or not new, new
    assert "sbpjax._core.compat.hub" not in sys.modules
    before = set(sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr[-500:]


@pytest.mark.parametrize("reader", READERS)
def test_archives_that_grow_are_refused(reader, tmp_path):
    size = 2**26
    body = p.tensor(p.storage(kind="ByteStorage", count=size), shape=(size,))
    refused(p.write(tmp_path / "x.pth", body, {"0": bytes(size)}, zipfile.ZIP_DEFLATED), reader, "in the archive")


@pytest.mark.parametrize("reader", READERS)
def test_members_that_overlap_are_refused(reader, tmp_path):
    """A directory whose hundred entries are one member: each would be read for itself."""
    tensors = [p.tensor(p.storage(str(i), count=1000), shape=(1000,)) for i in range(100)]
    members = {"0": bytes(4000)} | {str(i): b"" for i in range(1, 100)}
    path = p.write(tmp_path / "x.pth", p.several(*tensors), members)
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        first = archive.getinfo("a/data/0")
        at = archive.start_dir
    while data[at : at + 4] == b"PK\1\2":
        length, extra, comment = struct.unpack("<HHH", data[at + 28 : at + 34])
        if b"a/data/" in data[at + 46 : at + 46 + length]:
            data[at + 16 : at + 28] = struct.pack("<III", first.CRC, 4000, 4000)
        at += 46 + length + extra + comment
    path.write_bytes(data)
    refused(path, reader, "than the archive's")


@pytest.mark.parametrize("reader", [flow.load, serialization.load])
def test_damage_is_always_the_documented_error(reader, tmp_path):
    torch.save({"a": torch.randn(5, 6), "b": [1, 2.5, "x", torch.arange(4)]}, tmp_path / "good.pth")
    good, r = (tmp_path / "good.pth").read_bytes(), random.Random(0)
    wanted = str(reader(tmp_path / "good.pth"))
    for i in range(200):
        bad = bytearray(good[: r.randrange(len(good))] if i % 4 == 0 else good)
        for _ in range(0 if i % 4 == 0 else r.choice([1, 3, 10])):
            bad[r.randrange(len(bad))] ^= 1 << r.randrange(8)
        (tmp_path / "bad.pth").write_bytes(bad)
        try:
            assert str(reader(tmp_path / "bad.pth")) == wanted
        except errors.CheckpointError as error:
            assert "\n  fix:  " in str(error)


# -- what must go on being read ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_what_pytorch_allows_is_read(protocol, tmp_path):
    shared = torch.arange(6.0)
    state = {
        "set": {1, "a", (2, None)},
        "bytes": b"\0\xff",
        "array": bytearray(b"ab"),
        "complex": 1 - 2j,
        "counter": collections.Counter(a=2),
        "ordered": collections.OrderedDict([("k", [1])]),
        (1, "two"): True,
        2**70: -(2**70),
    }
    tensors = {
        "whole": shared,
        "part": shared[2:4],
        "expanded": torch.ones(1).expand(1000),
        "small": torch.tensor([1, 65535], dtype=torch.uint16),
        "float8": torch.tensor([0.5, -2.0]).to(torch.float8_e4m3fn),
    }
    torch.save({"plain": state, "tensors": tensors}, tmp_path / "x.pth", pickle_protocol=protocol)
    for reader in (read_torch, flow.load, serialization.load):
        found = reader(tmp_path / "x.pth")
        assert found["plain"] == state and found["plain"]["ordered"].__class__ is collections.OrderedDict
        assert list(found["tensors"]) == list(tensors)
        for key, x in tensors.items():
            value = found["tensors"][key]
            value = value if isinstance(value, np.ndarray) else value.numpy()
            np.testing.assert_array_equal(value.astype(np.float64), x.double().numpy())
    assert read_torch(tmp_path / "x.pth")["tensors"]["float8"].dtype == ml_dtypes.float8_e4m3fn


def test_a_module_s_metadata_comes_back(tmp_path):
    module = torch.nn.BatchNorm1d(3)
    torch.save(module.state_dict(), tmp_path / "x.pth")
    for reader in (read_torch, flow.load, serialization.load):
        assert reader(tmp_path / "x.pth")._metadata == module.state_dict()._metadata


def test_one_list_in_many_places_is_read_once(tmp_path):
    value = [torch.ones(1)]
    for _ in range(60):
        value = [value, value]
    torch.save(value, tmp_path / "x.pth")
    found = flow.load(tmp_path / "x.pth")
    for _ in range(60):
        assert found[0] is found[1]
        found = found[0]
    assert found[0].tolist() == [1.0]


class Allowed:
    def __init__(self):
        self.value = [1]


class Kept(Allowed):
    def __setstate__(self, state):
        self.kept = state


def test_classes_that_the_user_allowed(tmp_path):
    made = Allowed(), Kept()
    torch.save(made, tmp_path / "x.pth")
    names = [f"{__name__}.Allowed", f"{__name__}.Kept"]
    assert serialization.get_unsafe_globals_in_checkpoint(tmp_path / "x.pth") == names
    refused(tmp_path / "x.pth", serialization.load, "names .*Allowed")
    with serialization.safe_globals([Allowed, Kept]):
        assert serialization.get_unsafe_globals_in_checkpoint(tmp_path / "x.pth") == []
        found, kept = serialization.load(tmp_path / "x.pth")
    assert type(found) is Allowed and found.value == [1] and kept.kept == {"value": [1]}
    refused(tmp_path / "x.pth", serialization.load, "names .*Allowed")


def test_only_the_user_s_word_unpickles(tmp_path):
    torch.save({"x": Allowed()}, tmp_path / "x.pth")
    assert serialization.load(tmp_path / "x.pth", weights_only=False)["x"].value == [1]
    for word in ({}, {"weights_only": True}, {"weights_only": None}):
        with pytest.raises(errors.CheckpointError, match="its pickle names"):
            serialization.load(tmp_path / "x.pth", **word)


def test_a_place_that_is_missing_is_no_damage(tmp_path):
    torch.save({"x": torch.ones(1)}, tmp_path / "x.pth")
    with pytest.raises(errors.PlacementError):
        flow.load(tmp_path / "x.pth", "cpu:77")
    with pytest.raises(errors.PlacementError):
        serialization.load(io.BytesIO((tmp_path / "x.pth").read_bytes()), "cpu:77")


def test_element_types_never_change():
    for change in (lambda: setattr(flow.float32, "name", "int8"), lambda: delattr(flow.float32, "np")):
        with pytest.raises(errors.ImmutableError, match="never changes"):
            change()
    assert copy.deepcopy(flow.float32) is flow.float32 and pickle.loads(pickle.dumps(flow.int8)) is flow.int8
