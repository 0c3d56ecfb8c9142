"""Pickles and archives put together opcode by opcode, as an attacker would."""

import pickle
import struct
import zipfile

import numpy as np

FLOAT = np.array([1.5], np.float32).tobytes()


def name(module, what):
    return pickle.GLOBAL + f"{module}\n{what}\n".encode()


def text(value):
    data = value.encode()
    return pickle.BINUNICODE + struct.pack("<I", len(data)) + data


def integer(value):
    if isinstance(value, bytes):
        return value
    if -(2**31) <= value < 2**31:
        return pickle.BININT + struct.pack("<i", value)
    data = pickle.encode_long(value)
    return pickle.LONG1 + bytes([len(data)]) + data


def several(*parts):
    return pickle.MARK + b"".join(parts) + pickle.TUPLE


def mapping(**items):
    return pickle.EMPTY_DICT + pickle.MARK + b"".join(text(k) + v for k, v in items.items()) + pickle.SETITEMS


def call(function, *arguments):
    return function + several(*arguments) + pickle.REDUCE


def built(target, *state):
    return target + several(*state) + pickle.BUILD


def storage(key="0", kind="FloatStorage", count=1):
    return several(text("storage"), name("torch", kind), text(key), text("cpu"), integer(count)) + pickle.BINPERSID


def tensor(of=None, offset=0, shape=(1,), stride=(1,)):
    sizes = several(*map(integer, shape)), several(*map(integer, stride))
    rest = pickle.NEWFALSE, pickle.EMPTY_DICT
    return call(name("torch._utils", "_rebuild_tensor_v2"), of or storage(), integer(offset), *sizes, *rest)


def write(path, body, members=None, compression=zipfile.ZIP_STORED):
    """Write a file whose state is ``{"w": what the body makes}``."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        whole = pickle.PROTO + b"\x02" + pickle.EMPTY_DICT + text("w") + body + pickle.SETITEM + pickle.STOP
        archive.writestr("a/data.pkl", whole)
        for key, data in ({"0": FLOAT} if members is None else members).items():
            archive.writestr(f"a/data/{key}", data)
        archive.writestr("a/byteorder", "little")
    return path
