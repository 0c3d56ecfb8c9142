"""The kinds of files that sbpjax reads: how one is made, damaged and read, and which errors its reader documents."""

import hashlib
import json
import zipfile
from pathlib import Path

import numpy as np
import safetensors.numpy

import sbpjax as flow
from sbpjax import checkpoint, errors
from sbpjax._core.compat.torch_names import serialization
from sbpjax.checkpoint import read_torch
from sbpjax.data.checkpoint import manifest as checksums
from sbpjax.data.checkpoint.safetensors import open_safetensors
from sbpjax.graph.auto import plan_file
from sbpjax.graph.export import file_reader, manifest
from tests.fuzz import mutations
from tests.support import graphs


class Family:
    """One kind of file.

    Attributes:
        documented: the errors that its reader may raise.
        exact: damage of bytes alone gives the same values or an error, because there are checksums.
    """

    documented: tuple[type[BaseException], ...] = (errors.CheckpointError,)
    exact = True

    def make(self, folder: Path) -> None:
        """Write the whole file."""
        raise NotImplementedError

    def damage(self, folder: Path, r) -> bool:
        """Damage it; return whether only bytes were changed, with checksums left as they were."""
        raise NotImplementedError

    def read(self, folder: Path):
        """Return the arrays in it."""
        raise NotImplementedError


def arrays_of(value, found=None):
    """Return the arrays and tensors anywhere in a value."""
    found, waiting, seen = [], [value], set()
    while waiting:
        each = waiting.pop()
        if isinstance(each, (np.ndarray, flow.Tensor)):
            found.append(each if isinstance(each, np.ndarray) else each.detach().numpy())
        elif isinstance(each, (dict, list, tuple, set)) and id(each) not in seen:
            seen.add(id(each))
            waiting += [*each.values()] if isinstance(each, dict) else each
    return found


class Torch(Family):
    def make(self, folder):
        x = flow.arange(600, dtype=flow.float32).reshape(20, 30)
        state = {
            "w": x,
            "n": {"b": flow.ones(7, dtype=flow.bfloat16), "i": flow.arange(5)},
            "l": [1, 2.5, "a", None, (True,)],
        }
        serialization.save(state, folder / "x.pt")
        with zipfile.ZipFile(folder / "x.pt") as archive:
            assert "x/data.pkl" in archive.namelist()

    def damage(self, folder, r):
        path = folder / "x.pt"
        plain = r.random() < 0.3
        path.write_bytes((mutations.bytes_changed if plain else mutations.zip_changed)(path.read_bytes(), r))
        return plain

    def read(self, folder):
        return read_torch(folder / "x.pt")


class TorchAlias(Torch):
    """The reader of ``torch.load``, which makes tensors; it needs a device, so it takes longer."""

    def read(self, folder):
        return serialization.load(folder / "x.pt", weights_only=True)


class Safetensors(Family):
    exact = False  # the format has no checksums

    def make(self, folder):
        a = {"w": np.arange(600, dtype=np.float32).reshape(20, 30), "b": np.ones(7, np.float16)}
        safetensors.numpy.save_file(a, folder / "m-1.safetensors")
        safetensors.numpy.save_file({"i": np.arange(5), "e": np.zeros((0, 3), np.uint8)}, folder / "m-2.safetensors")
        files = {"w": "m-1.safetensors", "b": "m-1.safetensors", "i": "m-2.safetensors", "e": "m-2.safetensors"}
        (folder / "m.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": files}))

    def damage(self, folder, r):
        path = folder / r.choice(["m-1.safetensors", "m-2.safetensors", "m.safetensors.index.json"])
        data, how = path.read_bytes(), r.random()
        if how < 0.4:
            path.write_bytes(mutations.bytes_changed(data, r))
        elif path.suffix == ".json":
            path.write_bytes(mutations.json_changed(data, r))
        else:
            length = int.from_bytes(data[:8], "little")
            header = mutations.json_changed(data[8 : 8 + length], r)
            path.write_bytes(len(header).to_bytes(8, "little") + header + data[8 + length :])
        return False

    def read(self, folder):
        return open_safetensors(folder)


class Plan(Family):
    documented = (errors.SbpError,)
    exact = False  # text for people

    def make(self, folder):
        codes = {"parameter": {"a.*.w": (0, 1), "b": (0, 0)}, "batch": {"x": (0, 0)}}
        plan_file.Sharding((2, 4), codes).save(folder / "plan.json")

    def damage(self, folder, r):
        path = folder / "plan.json"
        change = mutations.bytes_changed if r.random() < 0.4 else mutations.json_changed
        path.write_bytes(change(path.read_bytes(), r))
        return False

    def read(self, folder):
        plan_file.load(folder / "plan.json")
        return []


class Graph(Family):
    """An export: manifest, digests, weights, the program as flatbuffer and its operations as MLIR."""

    documented = (errors.ExportError,)
    parsed_here = True

    def make(self, folder):
        small = graphs.graph_of(lambda model, x: {"y": model(x), "n": (1.5, None)}, flow.nn.Linear(4, 3))
        small.export(folder / "g", flow.ones(2, 4))
        for file in (folder / "g").iterdir():
            file.rename(folder / file.name)
        (folder / "g").rmdir()

    def damage(self, folder, r):
        how, path = r.random(), folder / manifest.MANIFEST
        self.parsed_here = not 0.6 <= how < 0.8  # another program of a fitting digest may end or stop the parser
        if how < 0.25:
            file = folder / r.choice([manifest.MANIFEST, manifest.PROGRAM, manifest.WEIGHTS])
            file.write_bytes(mutations.bytes_changed(file.read_bytes(), r))
            return file != path  # nothing covers the manifest itself without a key
        if how < 0.6:
            path.write_bytes(mutations.json_changed(path.read_bytes(), r))
            return False
        name, field = (manifest.PROGRAM, "program") if how < 0.8 else (manifest.WEIGHTS, "weights")
        made = mutations.bytes_changed((folder / name).read_bytes(), r)
        (folder / name).write_bytes(made)
        found = json.loads(path.read_text())
        found[field]["sha256"] = hashlib.sha256(made).hexdigest()
        path.write_text(json.dumps(found))
        return False

    def read(self, folder):
        """Read all that `load_graph` reads, but for starting devices."""
        requested, file_reader._PARSE_SECONDS = "fuzz", 5
        found = manifest.read(manifest.read_manifest_bytes(folder, requested), requested)
        file_reader.program(folder, found, requested, vouched=self.parsed_here)
        return file_reader.weights(folder, found, requested)


class Checkpoint(Family):
    """A directory of `sbpjax.checkpoint`."""

    def make(self, folder):
        state = {"w": flow.arange(600, dtype=flow.float32).reshape(20, 30), "s": 3, "l": [flow.ones(2), (None, "a")]}
        checkpoint.save(state, folder / "c")

    def damage(self, folder, r):
        files = sorted(p for p in (folder / "c").rglob("*") if p.is_file())
        texts = [p for p in files if p.suffix == ".json"]
        if r.random() < 0.5:
            path = r.choice(files)
            path.write_bytes(mutations.bytes_changed(path.read_bytes(), r))
            return True
        path = r.choice(texts)
        path.write_bytes(mutations.json_changed(path.read_bytes(), r))
        if path.name != checksums.CHECKSUMS and r.random() < 0.8:  # by somebody who knows the format
            (folder / "c" / checksums.CHECKSUMS).unlink()
            checksums.write(folder / "c")
        return False

    def read(self, folder):
        return checkpoint.load(folder / "c")


FAMILIES = {
    "torch": Torch, "torch alias": TorchAlias, "safetensors": Safetensors, "plan": Plan, "graph": Graph,
    "checkpoint": Checkpoint,
}  # fmt: skip
