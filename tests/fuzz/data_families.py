"""Families of files that training reads: adapters, indices of tokens, tables, logs of clicks, folders of models, runs.

What is silent is defined by the format. An adapter, an index and a snapshot that sbpjax has written carry digests: no
damage gives other values. A log of clicks is lines of text, and a configuration is text for people: another digit there
is another value, which nobody can tell from damage. There the structure is held: as many lines as the file has, of 40
fields, labels of 0 or 1, keys of 32 bits; a model of the weights' shapes.
"""

import numpy as np

import sbpjax as flow
from sbpjax import errors
from sbpjax.models import lora
from sbpjax.models.gpt2 import GPT2, GPT2Config
from sbpjax.train.data import TokenFile, TokenFileWriter
from tests.fuzz import families, mutations
from tests.fuzz.families import Family

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


FAMILIES = families.FAMILIES | {"adapter": Adapter, "token index": TokenIndex}
