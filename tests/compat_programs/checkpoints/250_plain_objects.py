import tempfile

import numpy as np
import oneflow as flow
from shown import show

value = {"names": ["a", "b"], "size": (2, 3), "nested": {"x": flow.tensor([1, 2]), "none": None}, "flag": True, "array": np.arange(3)}
with tempfile.TemporaryDirectory() as folder:
    flow.save(value, folder + "/value")
    back = flow.load(folder + "/value")
show("back", back)
show("types", (type(back["size"]).__name__, type(back["array"]).__name__))
