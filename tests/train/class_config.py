"""A configuration of a classifier: a BERT from the folder ``base`` on the table ``output.tsv``; and what lies there."""

import sbpjax as flow
from sbpjax import models, optim
from sbpjax.models.bert import BertConfig, BertForSequenceClassification
from sbpjax.train import Trainer
from sbpjax.train.config import LazyCall
from sbpjax.train.data import Columns, LabelledTexts, read_tokenizer, train_tokenizer

trainer = LazyCall(Trainer)(
    model=LazyCall(models.from_pretrained)(directory="base"),
    optimizer=LazyCall(optim.AdamW, partial=True)(lr=1e-3),
    data=LazyCall(LabelledTexts)(
        path="said.tsv",
        tokenizer=LazyCall(read_tokenizer)(path="words.json"),
        columns=LazyCall(Columns)("text", "kind", classes=None),
        length=12,
    ),
    batch_size=8,
    max_steps=4,
    parallel=LazyCall(models.Parallel)(data=2, device="cpu"),
    out="run",
)


def lay(folder, *, kinds=2, vocabulary=80, positions=16):
    """Write table, tokenizer and pre-trained folder; the defaults go together."""
    texts = ["not bad at all", "as dull as can be", "so so"]
    rows = [f"{texts[i % kinds]}\tkind{i % kinds}" for i in range(16)]
    (folder / "said.tsv").write_text("\n".join(["text\tkind", *rows]) + "\n")
    train_tokenizer(texts, 80, model="wordpiece").save(str(folder / "words.json"))
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    config = BertConfig(vocab_size=vocabulary, max_position_embeddings=positions, **sizes)
    flow.manual_seed(0)
    models.save_pretrained(BertForSequenceClassification(config), folder / "base", shard_bytes=1000)
    assert len(list((folder / "base").glob("*.safetensors"))) > 2


def with_field(folder):
    """Lay a folder whose model has a field that nobody knows."""
    lay(folder)
    path = folder / "base" / "config.json"
    path.write_text(path.read_text().replace("{", '{"hidden_sizes": 4,', 1))


def with_shard(folder, do):
    """Lay a folder, and do something to one file of its tensors."""
    lay(folder)
    do(sorted((folder / "base").glob("*.safetensors"))[1])


def masked(folder):
    """Write a configuration of pre-training on pairs whose vocabulary is not the model's."""
    lay(folder)
    (folder / "c.py").write_text(
        "from tests.train.class_config import *\n"
        "from sbpjax.train.data import BertPretrainingDataset, SpecialTokens\n"
        "special = LazyCall(SpecialTokens)(pad=0, begin=1, end=2, mask=3)\n"
        'trainer.data = LazyCall(BertPretrainingDataset)(file="pages", length=12, special=special, vocabulary=500)\n'
    )
