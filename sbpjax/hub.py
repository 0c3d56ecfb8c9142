"""Model hub under `torch.hub`'s names: models of a local directory, and state dicts from a URL.

    model = hub.load("/models/vision", "resnet18", source="local", pretrained=False)   # runs its hubconf.py
    state = hub.load_state_dict_from_url("https://example.org/resnet18.pt")            # runs no code

A repository of GitHub is downloaded as an archive into `get_dir`, and its ``hubconf.py`` is run: `load` requires
``trust_repo=True``. Downloads are written to a temporary name and renamed when complete. ``GITHUB_TOKEN`` is sent to
GitHub alone, over https.
"""

from ._core.compat.hub import download_url_to_file as download_url_to_file
from ._core.compat.hub import get_dir as get_dir
from ._core.compat.hub import help as help
from ._core.compat.hub import list as list
from ._core.compat.hub import load as load
from ._core.compat.hub import load_state_dict_from_url as load_state_dict_from_url
from ._core.compat.hub import load_url as load_url
from ._core.compat.hub import set_dir as set_dir
