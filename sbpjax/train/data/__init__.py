"""Training datasets: tokens on disk, labelled texts and images, click logs, pre-training samples.

    tokens = TokenFile("corpus")                            # corpus.bin and corpus.idx, as Megatron has them
    pieces = PackedTokens("corpus", length=1024, samples=1_000_000)
    inputs, targets = pieces[123_456]                       # (1024,) each; no earlier sample is read
    both = Blend([pieces, code], weights=[0.7, 0.3], samples=1_000_000)

* `token_file.py`: a memory-mapped file of documents, written as a stream and never half visible.
* `numbered.py`: base of datasets with numbered samples, and a shuffled order that needs no memory; `packed.py`,
  `blend.py`: two kinds of them.
* `bert_pairs.py`, `t5_span_corruption.py`: pre-training samples of BERT and T5.
* `labelled_texts.py`, `buckets.py`: tables of texts with labels, and batches of rows of about equal length.
* `images.py`: images with classes.
* `criteo.py`, `feature_keys.py`, `generated_clicks.py`: logs of clicks, rows for their keys, and generated ones.
* `tokenizer.py`, `documents.py`: from texts to tokens, BERT's special tokens; their command is
  `sbpjax.train.preprocess`.
"""

from .bert_pairs import BertPretrainingDataset as BertPretrainingDataset
from .blend import Blend as Blend
from .buckets import Buckets as Buckets
from .criteo import Clicks as Clicks
from .criteo import read_criteo as read_criteo
from .documents import EncodedDocuments as EncodedDocuments
from .feature_keys import FrequentKeys as FrequentKeys
from .feature_keys import crossed as crossed
from .feature_keys import hashed as hashed
from .generated_clicks import GeneratedClicks as GeneratedClicks
from .generated_clicks import generated_clicks as generated_clicks
from .images import ArrayImages as ArrayImages
from .images import Cifar as Cifar
from .images import ImageFolder as ImageFolder
from .images import Images as Images
from .labelled_texts import GLUE as GLUE
from .labelled_texts import Columns as Columns
from .labelled_texts import LabelledTexts as LabelledTexts
from .numbered import Numbered as Numbered
from .numbered import Permutation as Permutation
from .numbered import Shuffled as Shuffled
from .packed import PackedTokens as PackedTokens
from .t5_span_corruption import T5SpanCorruptionDataset as T5SpanCorruptionDataset
from .token_file import TokenFile as TokenFile
from .token_file import TokenFileWriter as TokenFileWriter
from .token_file import token_dtype as token_dtype
from .tokenizer import SpecialTokens as SpecialTokens
from .tokenizer import read_tokenizer as read_tokenizer
from .tokenizer import train_tokenizer as train_tokenizer
