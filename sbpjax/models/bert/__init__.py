"""BERT: pre-training on masked tokens and pairs of sentences, and classification of sequences."""

from .config import BertConfig as BertConfig
from .model import BertForPreTraining as BertForPreTraining
from .model import BertForSequenceClassification as BertForSequenceClassification
