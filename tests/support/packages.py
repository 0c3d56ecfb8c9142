"""Which room each file of ``sbpjax/`` belongs to, from the ground up: imports run down this list only.

A folder is a room. `PLACES` names the files at the top, and what stands elsewhere than its folder says: the longest
prefix decides.
"""

from __future__ import annotations

PACKAGES = (
    "ground",  # errors, who takes part, what the package is called, values as bytes
    "ops",  # pure functions of jax arrays
    "sbp",  # placements, sbp, layouts, conversions
    "programs",  # jaxprs as data, rules per primitive, plans
    "planner",  # which strategy every equation takes
    "compiler",  # a plan as one SPMD program
    "tensor",  # the handle, its storage, the ways of running an op, the tape, casts
    "functions",  # the public functions
    "nn",
    "optim",
    "tracing",  # a function of tensors as a program; transforms
    "engines",  # a program as a model of another engine
    "graph",
    "inspect",  # reports
    "distributed",
    "data",
    "testing",
    "compat",  # other packages' names
    "faces",  # re-exports
    "leaves",  # what stands on the public API only, and so may import the faces
)

TOP = ("sbp", "nn", "optim", "graph", "distributed", "data", "testing")  # packages outside of `_core`

PLACES = {
    "sbpjax/errors.py": "ground",
    "sbpjax/_core/__init__.py": "ground",
    "sbpjax/_core/naming.py": "ground",
    "sbpjax/_core/jax_private.py": "ground",
    "sbpjax/_core/runtime/": "ground",
    "sbpjax/_core/serialization/": "ground",
    **{
        f"sbpjax/{name}/" if name in TOP else f"sbpjax/_core/{name}/": name
        for name in PACKAGES
        if name not in ("ground", "faces", "leaves")
    },
    **dict.fromkeys(
        [
            f"sbpjax/{name}.py"
            for name in """__init__ _C amp auto checkpoint env fft func linalg nn/functional
            nn/parallel pipeline special""".split()
        ],
        "faces",
    ),
    **dict.fromkeys(["sbpjax/autograd/", "sbpjax/utils/"], "faces"),
    **dict.fromkeys([f"sbpjax/{name}/__init__.py" for name in ("graph", "nn", "nn/utils")], "faces"),
    "sbpjax/utils/data/": "data",
    "sbpjax/utils/data/_utils/": "data",
    "sbpjax/distributions/": "leaves",
    "sbpjax/models/": "leaves",
    "sbpjax/one_embedding/": "leaves",
    "sbpjax/serving/": "leaves",
    "sbpjax/train/": "leaves",
    "sbpjax/vision/": "leaves",
    "sbpjax/__main__.py": "faces",
    "sbpjax/cache.py": "faces",
    "sbpjax/comm.py": "faces",
    "sbpjax/cuda/": "faces",
    "sbpjax/hub.py": "faces",
    "sbpjax/mock_oneflow.py": "faces",
    "sbpjax/mock_torch.py": "faces",
    "sbpjax/profiler.py": "faces",
    "sbpjax/plan.py": "faces",
    "sbpjax/run.py": "faces",
    "sbpjax/unittest/": "faces",
}


def package_of(file: str) -> str:
    """Return the room of a file.

    Raises:
        ValueError: the file has no place yet.
    """
    return PLACES[max((place for place in PLACES if file.startswith(place)), key=len)]
