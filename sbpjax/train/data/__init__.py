"""Tokens on disk, and the samples that a model is trained on.

    tokens = TokenFile("corpus")                            # corpus.bin and corpus.idx, as Megatron has them
    pieces = PackedTokens("corpus", length=1024, samples=1_000_000)
    inputs, targets = pieces[123_456]                       # (1024,) each; no sample before it is looked at
    both = Blend([pieces, code], weights=[0.7, 0.3], samples=1_000_000)

* `token_file.py`: a memory-mapped file of documents, written as a stream and never half visible.
* `numbered.py`: what samples with numbers have in common; `packed.py`, `blend.py`: two kinds of them.
* `permutation.py`: a shuffled order that needs no memory.
* `tokenizer.py`, `documents.py`: from texts to tokens; `sbpjax.train.preprocess` is their command.
"""

from .blend import Blend as Blend
from .documents import EncodedDocuments as EncodedDocuments
from .numbered import Numbered as Numbered
from .packed import PackedTokens as PackedTokens
from .permutation import Permutation as Permutation
from .token_file import TokenFile as TokenFile
from .token_file import TokenFileWriter as TokenFileWriter
from .token_file import token_dtype as token_dtype
