import os
import tempfile

import oneflow as flow
from shown import show

with tempfile.TemporaryDirectory() as folder:
    try:
        flow.load(folder + "/nothing")
        show("missing", "no error")
    except Exception:
        show("missing", "error")
    with open(os.path.join(folder, "broken"), "wb") as file:
        file.write(b"not a checkpoint")
    try:
        flow.load(folder + "/broken")
        show("broken", "no error")
    except Exception:
        show("broken", "error")
