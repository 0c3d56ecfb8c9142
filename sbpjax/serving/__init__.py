"""Serving exported graphs: a repository of models behind a Triton server.

    python -m sbpjax.serving REPOSITORY

`repository.py` reads the folder and says what each model takes and gives, `triton.py` starts the server, `backend.py`
is what runs inside of it, `batches.py` joins the requests of a batch. `generation.py` writes text for many requests at
once, with the keys and values of `paged.py`; `openai.py` is its HTTP endpoint.
"""

from .batches import Batches as Batches
from .generation import GenerationEngine as GenerationEngine
from .generation import Stream as Stream
from .repository import Model as Model
from .repository import Repository as Repository
from .triton import Server as Server
from .triton import find_server as find_server
