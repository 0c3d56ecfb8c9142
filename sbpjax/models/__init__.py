"""Transformer models by family, the sharding tables of their parameters, and text generation.

    from sbpjax import models

    spec = models.Parallel(data=2, fsdp=2, tensor=2)                # 8 devices
    model = models.from_pretrained("llama-3-8b/", spec)             # every tensor read into its shards
    tokens = spec.place(batch)                                      # (B, T), split over data and fsdp
    loss = model.loss(tokens[:, :-1], tokens[:, 1:])
    models.save_pretrained(model, "tuned/")                         # a folder that transformers reads

A family is a folder of four files, and nothing else in this room knows of it:

* `config.py`: a frozen dataclass with the fields of Hugging Face's ``config.json``.
* `model.py`: `nn.Module` code of whole tensors, from the shared `layers/`.
* `sharding.py`: a table *parameter name → logical axis of each dim* (``heads``, ``hidden``, ``vocab``, ``width``, …).
* `weights.py`: a table *our name → the name in the files*, with how a tensor is turned or cut on the way.

`recommend/` is another matter: models of clicks and retrieval, which have no files of Hugging Face's.

`parallel.py` maps each logical axis to a mesh axis: so logical axes become sbps, on one placement whose hierarchy is
the product of the axes. `parallelize.py` moves a model there. `pretrained.py` reads and writes folders, `lora.py` those
of adapters.
"""

from . import bert as bert
from . import gpt2 as gpt2
from . import layers as layers
from . import llama as llama
from . import lora as lora
from . import mixtral as mixtral
from . import recommend as recommend
from . import t5 as t5
from .config import Config as Config
from .generate import Generator as Generator
from .generate import generate as generate
from .parallel import Parallel as Parallel
from .parallelize import Sharding as Sharding
from .parallelize import parallelize as parallelize
from .pretrained import from_pretrained as from_pretrained
from .pretrained import save_pretrained as save_pretrained
from .weights import Part as Part
from .weights import Weights as Weights
