"""Seeded damage to files: of bytes, and of what the bytes mean."""

import json
import pickle
import pickletools
import struct
import zipfile
from io import BytesIO

INTEGERS = [
    0,
    1,
    -1,
    2,
    127,
    128,
    255,
    256,
    2**15,
    2**16,
    2**31 - 1,
    2**31,
    2**32,
    -(2**31),
    2**40,
    2**63,
    2**64,
    -(2**63),
]
VALUES = [
    None,
    True,
    False,
    0,
    -1,
    1.5,
    2**31,
    2**63,
    10**400,
    "",
    "x",
    "../../etc/passwd",
    "\0",
    [],
    {},
    [[]],
    [None] * 3,
    {"": "tensor"},
]


def bytes_changed(data, r):
    """Flip bits, cut, splice, repeat, or write an integer over bytes."""
    data, how = bytearray(data), r.randrange(6)
    at = r.randrange(len(data)) if data else 0
    if how == 0:
        return bytes(data[:at])
    if how == 1:
        end = min(len(data), at + r.randrange(1, 64))
        del data[at:end]
    elif how == 2:
        other = r.randrange(len(data))
        data[at:at] = data[other : other + r.randrange(1, 64)]
    elif how == 3:
        form = r.choice(["<B", "<H", "<I", "<Q"])
        size = struct.calcsize(form)
        data[at : at + size] = struct.pack(form, r.choice(INTEGERS) % 2 ** (8 * size))
    else:
        for _ in range(r.choice([1, 1, 3, 10])):
            data[r.randrange(len(data))] ^= 1 << r.randrange(8)
    return bytes(data)


def json_changed(text, r):
    """Exchange, drop, add or nest one value anywhere in a JSON text."""
    content = json.loads(text)
    places = []

    def walk(value):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            places.append((value, key))
            if isinstance(value[key], (dict, list)):
                walk(value[key])

    walk(content)
    for _ in range(r.choice([1, 1, 2, 4])):
        holder, key = r.choice(places)
        how = r.randrange(7)
        if isinstance(holder, list) and key >= len(holder) or isinstance(holder, dict) and key not in holder:
            continue
        if how == 0:
            del holder[key]
        elif how == 1 and isinstance(holder[key], int):
            holder[key] = r.choice(INTEGERS)
        elif how == 2:
            other, name = r.choice(places)
            if isinstance(other, list) and name >= len(other) or isinstance(other, dict) and name not in other:
                continue
            holder[key] = json.loads(json.dumps(other[name]))
        elif how == 3 and isinstance(holder, dict):
            holder[r.choice(["", "x", "..", "index", "shape"])] = holder.pop(key)
        elif how == 4:
            holder[key] = [holder[key]] * r.choice([0, 2, 9])
        else:
            holder[key] = r.choice(VALUES)
    made = json.dumps(content)
    if r.random() < 0.05:
        deep = "[" * 20_000 + "]" * 20_000 if r.random() < 0.5 else "[" * 20_000
        made = made.replace("null", deep, 1) if "null" in made else deep
    return made.encode()


def pickle_changed(text, r):
    """Exchange opcodes and their arguments; repeat, move or drop stretches of a pickle."""
    spots = [at for _, _, at in pickletools.genops(text)]
    edges = [*spots, len(text)]
    pieces = [text[a:b] for a, b in zip(edges, edges[1:], strict=False)]
    for _ in range(r.choice([1, 1, 2, 5])):
        i = r.randrange(len(pieces))
        how, code = r.randrange(8), pieces[i][:1]
        if how == 0:
            pieces[i] = r.choice(pieces)
        elif how == 1:
            del pieces[i : i + r.randrange(1, 4)]
            pieces = pieces or [pickle.STOP]
        elif how == 2:
            pieces.insert(i, r.choice(pieces))
        elif how == 3:
            pieces[i] = bytes([r.choice(pickletools.opcodes).code.encode("latin1")[0]]) + pieces[i][1:]
        elif how == 4:
            pieces.insert(
                i,
                r.choice(
                    [
                        pickle.BUILD,
                        pickle.REDUCE,
                        pickle.NEWOBJ,
                        pickle.SETITEM,
                        pickle.APPENDS,
                        pickle.TUPLE1,
                        pickle.BINPERSID,
                        pickle.MARK,
                        pickle.TUPLE,
                    ]
                ),
            )
        elif code == pickle.GLOBAL:
            pieces[i] = pickle.GLOBAL + r.choice(
                [
                    b"torch\nfloat32\n",
                    b"torch\nSize\n",
                    b"os\nsystem\n",
                    b"torch\nLongStorage\n",
                    b"torch._utils\n_rebuild_tensor_v3\n",
                    b"builtins\nbytearray\n",
                    b"collections\nOrderedDict\n",
                    b"torch\nUntypedStorage\n",
                    b"torch\ndevice\n",
                ]
            )
        elif code in (pickle.BININT, pickle.BININT1, pickle.BININT2, pickle.LONG1):
            value = r.choice(INTEGERS)
            data = pickle.encode_long(value)
            pieces[i] = pickle.LONG1 + bytes([len(data)]) + data
        elif code == pickle.BINUNICODE:
            pieces[i] = pickle.BINUNICODE + struct.pack("<I", 1) + r.choice([b"0", b"1", b"9", b"."])
    return b"".join(pieces)


def zip_changed(data, r):
    """Write an archive anew with a changed pickle or storage, whole checksums and all, or edit its directory."""
    if r.random() < 0.25:
        data = bytearray(data)
        start = data.find(b"PK\1\2")
        for _ in range(r.choice([1, 2, 6])):
            at = r.randrange(start, len(data))
            size = r.choice([1, 2, 4])
            data[at : at + size] = (r.choice(INTEGERS) % 2 ** (8 * size)).to_bytes(size, "little")
        return bytes(data)
    out = BytesIO()
    packing = zipfile.ZIP_DEFLATED if r.random() < 0.1 else zipfile.ZIP_STORED
    with zipfile.ZipFile(BytesIO(data)) as old, zipfile.ZipFile(out, "w", packing) as new:
        for entry in old.infolist():
            member = old.read(entry)
            if entry.filename.endswith("data.pkl"):
                member = pickle_changed(member, r) if r.random() < 0.9 else bytes_changed(member, r)
            elif r.random() < 0.05:
                member = member[: r.randrange(len(member) + 1)]
            elif r.random() < 0.02:
                continue
            new.writestr(entry.filename, member)
    return out.getvalue()
