"""Model serving: exported graphs by Triton or KServe, and text generation with continuous batching.

    python -m sbpjax.serving REPOSITORY

`repository.py` reads the folder and the inputs and outputs of each model, `triton.py` starts the server, `backend.py`
runs inside it, `batches.py` joins the requests of a batch. `generation.py` is the engine of continuous batching, with
the paged key-value cache of `paged.py`; `openai.py` is its HTTP endpoint.
"""

from .batches import Batches as Batches
from .generation import GenerationEngine as GenerationEngine
from .generation import Stream as Stream
from .repository import Model as Model
from .repository import Repository as Repository
from .triton import Server as Server
from .triton import find_server as find_server
