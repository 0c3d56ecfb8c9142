"""Families of files that training reads: adapters, indices of tokens, tables, logs of clicks, folders of models, runs.

What is silent is defined by the format. An adapter, an index and a snapshot that sbpjax has written carry digests: no
damage gives other values. A log of clicks is lines of text, and a configuration is text for people: another digit there
is another value, which nobody can tell from damage. There the structure is held: as many lines as the file has, of 40
fields, labels of 0 or 1, keys of 32 bits; a model of the weights' shapes.
"""

import gzip
import json
import types

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import checkpoint, errors, models, one_embedding, optim
from sbpjax.models import lora
from sbpjax.models.gpt2 import GPT2, GPT2Config
from sbpjax.serving import Repository
from sbpjax.train import Checkpoints, Trainer
from sbpjax.train.config import LazyCall, save_config
from sbpjax.train.data import (
    Columns,
    LabelledTexts,
    PackedTokens,
    SpecialTokens,
    TokenFile,
    TokenFileWriter,
    read_criteo,
    read_tokenizer,
)
from sbpjax.train.data.documents import chunks_of, texts_of
from sbpjax.train.data.tokenizer import train_tokenizer
from sbpjax.train.load_run import load_run
from sbpjax.vision.datasets import CocoDetection, VocDetection
from sbpjax.vision.datasets.reading import read_image
from tests.fuzz import families, mutations
from tests.fuzz.families import Family
from tests.support import graphs

SMALL = {"vocab_size": 32, "n_positions": 8, "n_embd": 16, "n_layer": 1, "n_head": 2}


def changed(path, r, *, json_share=0.5):
    """Damage a file: its bytes, or, of JSON, what they mean."""
    is_json = path.suffix == ".json" and r.random() < json_share
    change = mutations.json_changed if is_json else mutations.bytes_changed
    path.write_bytes(change(path.read_bytes(), r))


class Adapter(Family):
    """A folder of `lora.save`, loaded into a model that stays as it is where the folder is refused."""

    def __init__(self):
        flow.manual_seed(0)
        self.model = GPT2(GPT2Config(**SMALL))

    def make(self, folder):
        model = lora.attach(self.model, ["*.attention.[qv]", "*.mlp.up"], rank=2, alpha=8.0, also=("norm.*",))
        for _, layer in lora.layers(model):
            layer.set(*(np.random.default_rng(0).normal(size=tuple(p.shape)) for p in (layer.lora_a, layer.lora_b)))
        lora.save(model, folder / "a")
        self.model = GPT2(GPT2Config(**SMALL))
        self.before = {name: p.detach().numpy() for name, p in self.model.named_parameters()}

    def damage(self, folder, r):
        names = ["adapter_config.json", "adapter_model.safetensors"]
        path, how = folder / "a" / r.choice(names), r.random()
        if path.suffix == ".json" or how < 0.5:
            changed(path, r)
            return True
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        header = mutations.json_changed(data[8 : 8 + length], r)
        path.write_bytes(len(header).to_bytes(8, "little") + header + data[8 + length :])
        return lora.DIGEST.encode() in header  # else it is a file by another hand

    def read(self, folder):
        modules = dict(self.model.named_modules())
        try:
            lora.load(self.model, folder / "a")
        except BaseException:
            assert dict(self.model.named_modules()) == modules, "the model has other layers"
            for name, parameter in self.model.named_parameters():
                assert parameter.requires_grad and (parameter.detach().numpy() == self.before[name]).all(), name
            raise
        found = [p.detach().numpy() for p in self.model.parameters()]
        found.append(np.array([(layer.scale, layer.drop.p) for _, layer in lora.layers(self.model)]))
        for name, _ in list(lora.layers(self.model)):
            lora._exchange(self.model, name, modules[name])
        self.model.requires_grad_(True)
        for name, value in self.before.items():
            self.model.get_parameter(name).data = flow.tensor(value)
        return found


class TokenIndex(Family):
    """The index of a file of tokens, with its digest."""

    documented = (errors.DataError,)

    def make(self, folder):
        with TokenFileWriter(folder / "t", np.uint16) as writer:
            for i in range(20):
                writer.add(np.arange(i % 7) * 9_000)

    def damage(self, folder, r):
        changed(folder / "t.idx", r)
        return True

    def read(self, folder):
        file = TokenFile(folder / "t")
        parts = [file[i] for i in range(len(file))] + [file.sentences(i) for i in range(len(file))]
        return [*parts, file.lengths, np.array([len(x) for x in parts])]


class Snapshot(Family):
    """A snapshot of tables: ``table.json``, and a file of each column."""

    documented = (errors.TableError,)

    def table(self, folder):
        store = one_embedding.make_device_mem_store_options(str(folder), 64)
        options = one_embedding.make_table_options(one_embedding.make_uniform_initializer(-1, 1))
        return one_embedding.MultiTableEmbedding("t", 4, flow.float32, flow.int64, [options], store, seed=3)

    def make(self, folder):
        table = self.table(folder)
        table._cache.store.add_column("exp_avg", np.float32, 0.5)
        table(flow.arange(30))
        table.save_snapshot("a")

    def damage(self, folder, r):
        changed(r.choice([folder / "t" / "a" / "table.json", *sorted((folder / "t" / "a").iterdir())]), r)
        return True

    def read(self, folder):
        table = self.table(folder)
        store = table._cache.store
        before = table(flow.arange(3, 5)).detach().numpy()
        try:
            table.load_snapshot("a")
        except BaseException:
            assert (table(flow.arange(3, 5)).detach().numpy() == before).all() and len(store.live()) == 2
            raise
        rows = store.live()
        order = np.argsort(store.keys.data[rows])
        columns = [store.keys, store.tables, store.seen, store.counts, *store.columns.values()]
        return [column.data[rows][order] for column in columns]


class Criteo(Family):
    """Lines of a log, as text and compressed: damage is an error, or other values of as many lines, within bounds."""

    documented = (errors.DataError,)
    exact = False
    LINES = 40

    def make(self, folder):
        random = np.random.default_rng(0)
        rows = []
        for i in range(self.LINES):
            counts = ["" if n % 5 == 0 else str(n) for n in random.integers(0, 900, 13)]
            rows.append("\t".join([str(i % 2), *counts, *(f"{n:08x}" for n in random.integers(0, 2**32, 26))]) + "\n")
        (folder / "day").write_text("".join(rows))
        (folder / "day.gz").write_bytes(gzip.compress("".join(rows).encode(), mtime=0))

    def damage(self, folder, r):
        """Damage one of both; what is compressed has a checksum."""
        self.name = r.choice(["day", "day.gz"])
        changed(folder / self.name, r)
        self.lines = (folder / "day").read_bytes().rstrip(b"\n").count(b"\n") + 1
        return False

    def read(self, folder):
        blocks = []
        for name in ("day", "day.gz"):
            blocks += list(read_criteo(folder / name, 16))
        size = sum(len(block.labels) for block in blocks)
        assert size == getattr(self, "lines", self.LINES) + self.LINES, "other lines than the file has"
        for labels, dense, keys in blocks:
            assert dense.shape == (len(labels), 13) and keys.shape == (len(labels), 26)
            assert np.isin(labels, (0, 1)).all() and np.isfinite(dense).all() and (keys <= 2**32).all()
        return [array for block in blocks for array in block]


class ModelFolder(Family):
    """A folder in Hugging Face's layout with a damaged ``config.json``: a model of the weights' shapes, or an error."""

    documented = (errors.ConfigError, errors.CheckpointError)
    exact = False  # a field is a value that a person may change: dropout, the heads that a matrix is cut into

    def make(self, folder):
        flow.manual_seed(0)
        models.save_pretrained(GPT2(GPT2Config(**SMALL)), folder / "m")

    def damage(self, folder, r):
        changed(folder / "m" / "config.json", r, json_share=0.7)
        return False

    def read(self, folder):
        model = models.from_pretrained(folder / "m")
        out = model.eval()(flow.zeros(1, 4, dtype=flow.int64))
        assert tuple(out.shape) == (1, 4, SMALL["vocab_size"])
        return [p.detach().numpy() for p in model.parameters()]


class Run(Family):
    """The directory of a run with a damaged ``config.yaml``: the model of the checkpoint's shapes, or an error."""

    documented = (errors.SbpjaxError,)
    exact = False  # a file that people edit

    def make(self, folder):
        call = LazyCall(GPT2)(config=LazyCall(GPT2Config)(**SMALL))
        hooks = {"checkpoints": LazyCall(Checkpoints)(every=2)}
        data, optimizer = LazyCall(PackedTokens)(file="t", length=8), LazyCall(optim.AdamW, partial=True)(lr=1e-3)
        trainer = LazyCall(Trainer)(model=call, optimizer=optimizer, hooks=hooks, data=data, max_steps=2, batch_size=2)
        save_config(LazyCall(dict)(seed=1, steps=2, trainer=trainer), folder / "run")
        flow.manual_seed(0)
        with checkpoint.Manager(folder / "run" / "checkpoints") as manager:
            manager.save(2, {"model": GPT2(GPT2Config(**SMALL)).state_dict()})

    def damage(self, folder, r):
        path = folder / "run" / "config.yaml"
        text = path.read_text()
        if r.random() < 0.5:
            changed(path, r)
            return False
        lines = text.splitlines()
        i = r.randrange(1, len(lines))
        name, _, value = lines[i].partition(": ")
        value = r.choice(["-2", "1099511627776", "1e400", "nan", "'x'", "[1]", "{}", "null", "true", "''", "${a}",
                          "${trainer}", "${oc.env:HOME}", "os:system", "builtins:eval", "&a [*a]", "!!python/none",
                          "2026-01-01", "0x7fffffff", "sbpjax:load", "[" * 300, value + "0"])  # fmt: skip
        lines[i] = f"{name}: {value}" if r.random() < 0.8 else lines[r.randrange(1, len(lines))]
        path.write_text("\n".join(lines) + "\n")
        return False

    def read(self, folder):
        model = load_run(folder / "run")
        return [p.detach().numpy() for p in model.parameters()]


class Coco(Family):
    """A file of COCO's annotations, with boxes, polygons and runs; text that people edit."""

    documented = (errors.DataError,)
    exact = False

    def make(self, folder):
        pytest.importorskip("PIL.Image", reason="Pillow is not installed").new("RGB", (30, 20)).save(folder / "a.jpg")
        common = {"id": 1, "image_id": 1, "category_id": 1, "area": 90}
        runs = {"size": [20, 30], "counts": [10, 20, 570]}
        annotations = [
            common | {"bbox": [1, 2, 10, 9], "iscrowd": 0, "segmentation": [[1, 2, 5, 2, 5, 8]]},
            common | {"bbox": [0, 0, 5, 5], "iscrowd": 1, "segmentation": runs, "keypoints": [1, 2, 2]},
        ]
        images = [{"id": 1, "file_name": "a.jpg", "width": 30, "height": 20}]
        content = {"images": images, "categories": [{"id": 1, "name": "x"}], "annotations": annotations}
        (folder / "coco.json").write_text(json.dumps(content))

    def damage(self, folder, r):
        changed(folder / "coco.json", r, json_share=0.6)
        return False

    def read(self, folder):
        data = CocoDetection(folder, folder / "coco.json", masks=True, keypoints=True, crowds=True)
        return [value for i in range(len(data)) for value in data[i].values() if isinstance(value, np.ndarray)]


class Picture(Family):
    """A file of an image of each common format: a whole image, or an error."""

    documented = (errors.DataError,)
    exact = False  # most formats have no checksums
    ENDINGS = ("png", "jpg", "gif", "bmp", "tif", "ppm", "webp")

    def make(self, folder):
        image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
        pixels = np.random.default_rng(0).integers(0, 255, (14, 18, 3)).astype(np.uint8)
        for ending in self.ENDINGS:
            image.fromarray(pixels).save(folder / f"a.{ending}")

    def damage(self, folder, r):
        self.ending = r.choice(self.ENDINGS)
        changed(folder / f"a.{self.ending}", r)
        return False

    def read(self, folder):
        endings = [self.ending] if hasattr(self, "ending") else self.ENDINGS
        found = [np.asarray(read_image(folder / f"a.{ending}")) for ending in endings]
        assert all(a.ndim == 3 and a.shape[2] == 3 and a.dtype == np.uint8 for a in found)
        return found


class Voc(Family):
    """The list of images and the annotations of Pascal VOC, text that people edit."""

    documented = (errors.DataError,)
    exact = False

    def make(self, folder):
        for name in ("JPEGImages", "Annotations", "ImageSets/Main"):
            (folder / name).mkdir(parents=True)
        pytest.importorskip("PIL.Image", reason="Pillow is not installed").new("RGB", (30, 20)).save(
            folder / "JPEGImages" / "a.jpg"
        )
        box = "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>9</xmax><ymax>8</ymax></bndbox>"
        one = f"<object><name>cat</name><difficult>0</difficult>{box}</object>"
        (folder / "Annotations" / "a.xml").write_text(f"<annotation><filename>a.jpg</filename>{one * 2}</annotation>")
        (folder / "ImageSets" / "Main" / "train.txt").write_text("a\n")

    def damage(self, folder, r):
        changed(folder / r.choice(["Annotations/a.xml", "Annotations/a.xml", "ImageSets/Main/train.txt"]), r)
        return False

    def read(self, folder):
        data = VocDetection(folder)
        samples = [data[i] for i in range(len(data))]
        assert all(np.isfinite(sample["boxes"]).all() for sample in samples)
        return [value for sample in samples for value in sample.values() if isinstance(value, np.ndarray)]


class TokenizerJson(Family):
    """A ``tokenizer.json``, text that people edit: the tokens of a text, or an error."""

    documented = (errors.DataError,)
    exact = False

    def make(self, folder):
        train_tokenizer([f"the cat {i} sat on the mat" for i in range(30)], 280).save(str(folder / "tokenizer.json"))

    def damage(self, folder, r):
        changed(folder / "tokenizer.json", r, json_share=0.7)
        return False

    def read(self, folder):
        return [np.array(read_tokenizer(folder).encode("the cat sat on 7 mats").ids)]


class ModelRepository(Family):
    """A repository of served models: names, types and sizes in its manifest and its ``config.pbtxt``."""

    documented = (errors.ServingError,)
    exact = False

    def make(self, folder):
        small = graphs.graph_of(lambda model, x: model(x), flow.nn.Linear(4, 3))
        small.export(folder / "m" / "1" / "model", flow.ones(2, 4), dynamic_batch=True)
        (folder / "m" / "config.pbtxt").write_text('parameters { key: "engine" value { string_value: "xla" } }')

    def damage(self, folder, r):
        changed(folder / "m" / r.choice(["1/model/manifest.json"] * 3 + ["config.pbtxt"]), r, json_share=0.7)
        return False

    def read(self, folder):
        (model,) = Repository(folder).models
        return [np.frombuffer(model.config().encode(), np.uint8)]


class Letters:
    """A tokenizer whose tokens are characters."""

    def encode_batch_fast(self, texts, add_special_tokens):
        """Return what has the tokens of each text as `ids`."""
        return [types.SimpleNamespace(ids=[4 + ord(c) for c in text]) for text in texts]


class Documents(Family):
    """Texts with labels, and documents of texts: lines of JSON in UTF-8."""

    documented = (errors.DataError,)
    exact = False

    def make(self, folder):
        (folder / "t.jsonl").write_text("".join(f'{{"text": "a b {i}", "kind": {i % 3}}}\n' for i in range(9)))

    def damage(self, folder, r):
        changed(folder / "t.jsonl", r)
        return False

    def read(self, folder):
        path = str(folder / "t.jsonl")
        texts = [text for chunk in chunks_of([path], False) for text in texts_of(chunk, "text")]
        table = LabelledTexts(
            path, Letters(), Columns("text", "kind", classes=None), 8, special=SpecialTokens(0, 1, 2, 3)
        )
        return [np.array([ord(c) for text in texts for c in text]), *(table[i]["input_ids"] for i in range(len(table)))]


FAMILIES = families.FAMILIES | {
    "adapter": Adapter, "token index": TokenIndex, "snapshot": Snapshot, "criteo": Criteo, "model folder": ModelFolder,
    "run": Run, "coco": Coco, "documents": Documents, "picture": Picture, "voc": Voc, "tokenizer": TokenizerJson,
    "repository": ModelRepository,
}  # fmt: skip
