"""Vision: models of images, operations of detection, transforms, datasets; on the public functions alone."""

from sbpjax._core.functions.table.table import face as _face

_MODULES = """datasets metrics models ops pictures training transforms create_model=vision.models:create_model
 from_hub=vision.models:from_hub list_models=vision.models:list_models register_model=vision.models:register_model"""
__getattr__, __dir__ = _face("vision", globals(), modules=_MODULES)
