"""Vision: models, detection ops, transforms, datasets."""

import importlib

_PACKAGES = "datasets metrics models ops pictures training transforms".split()
_MODELS = "create_model from_hub list_models register_model".split()


def __getattr__(name: str):
    if name in _PACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _MODELS:
        return getattr(importlib.import_module(f"{__name__}.models"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_PACKAGES, *_MODELS])
