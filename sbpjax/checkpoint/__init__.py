from .inspecting import Entry as Entry
from .inspecting import inspect as inspect
from .loading import load as load
from .manager import Manager as Manager
from .saving import Saving as Saving
from .saving import save as save
