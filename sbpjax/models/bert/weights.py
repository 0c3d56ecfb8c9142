"""Weight names of BERT in Hugging Face's files."""

from __future__ import annotations

from sbpjax.models.weights import Weights

from .config import BertConfig
from .model import BertForPreTraining, BertForSequenceClassification

WEIGHTS = Weights(
    config=BertConfig,
    architectures={
        "BertForPreTraining": BertForPreTraining,
        "BertForSequenceClassification": BertForSequenceClassification,
    },
    names={
        "embeddings.token": "bert.embeddings.word_embeddings",
        "embeddings.position": "bert.embeddings.position_embeddings",
        "embeddings.segment": "bert.embeddings.token_type_embeddings",
        "embeddings.norm": "bert.embeddings.LayerNorm",
        "blocks.*.attention.q": "bert.encoder.layer.*.attention.self.query",
        "blocks.*.attention.k": "bert.encoder.layer.*.attention.self.key",
        "blocks.*.attention.v": "bert.encoder.layer.*.attention.self.value",
        "blocks.*.attention.out": "bert.encoder.layer.*.attention.output.dense",
        "blocks.*.norm1": "bert.encoder.layer.*.attention.output.LayerNorm",
        "blocks.*.mlp.up": "bert.encoder.layer.*.intermediate.dense",
        "blocks.*.mlp.down": "bert.encoder.layer.*.output.dense",
        "blocks.*.norm2": "bert.encoder.layer.*.output.LayerNorm",
        "pooler": "bert.pooler.dense",
        "masked.dense": "cls.predictions.transform.dense",
        "masked.norm": "cls.predictions.transform.LayerNorm",
        "masked.bias": "cls.predictions.bias",
        "follows": "cls.seq_relationship",
        "classifier": "classifier",
    },
    # Positions 0 to T - 1, and the output matrix, which is the embedding, with its bias, which stands there too.
    skipped=(r"bert\.embeddings\.position_ids", r"cls\.predictions\.decoder\.(weight|bias)"),
    older=((r"LayerNorm\.gamma$", "LayerNorm.weight"), (r"LayerNorm\.beta$", "LayerNorm.bias")),
)
