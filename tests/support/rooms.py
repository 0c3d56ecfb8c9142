"""Which room each file of ``sbpjax/`` belongs to, from the ground up: imports run down this list only.

Folders are not rooms yet: ``sbpjax/sbp/`` holds four of them. The longest prefix in `PLACES` says where a file belongs.
"""

from __future__ import annotations

ROOMS = (
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
    "trace",  # a function of tensors as a program; transforms
    "graph",
    "inspect",  # reports
    "distributed",
    "data",
    "testing",
    "compat",  # other packages' names
    "faces",  # re-exports
    "leaves",  # what stands on the public API only, and so may import the faces
)

PLACES = {
    **dict.fromkeys(
        [f"sbpjax/{name}.py" for name in "_pause absent calls encoding errors naming signing world".split()],
        "ground",
    ),
    "sbpjax/_C.py": "functions",
    "sbpjax/__init__.py": "faces",
    "sbpjax/_config.py": "faces",
    "sbpjax/_lazy.py": "faces",
    "sbpjax/_oneflow_internal.py": "compat",
    "sbpjax/amp/": "tensor",
    "sbpjax/amp/__init__.py": "faces",
    "sbpjax/amp/grad_scaler.py": "optim",
    "sbpjax/amp/scaling.py": "optim",
    "sbpjax/amp/static_scaler.py": "optim",
    "sbpjax/amp/widen.py": "programs",
    "sbpjax/asyncs.py": "compat",
    "sbpjax/auto/": "inspect",
    "sbpjax/auto/activations.py": "planner",
    "sbpjax/auto/pin.py": "planner",
    "sbpjax/auto/plan_file.py": "graph",
    "sbpjax/auto/rows.py": "graph",
    "sbpjax/auto/stages.py": "graph",
    "sbpjax/auto/subject.py": "graph",
    "sbpjax/autograd/": "tensor",
    "sbpjax/autograd/__init__.py": "faces",
    "sbpjax/autograd/checkpoint.py": "trace",
    "sbpjax/autograd/cond.py": "trace",
    "sbpjax/autograd/functional.py": "trace",
    "sbpjax/autograd/gradcheck.py": "functions",
    "sbpjax/backends/": "compat",
    "sbpjax/boxing/": "compat",
    "sbpjax/checkpoint/": "data",
    "sbpjax/comm.py": "compat",
    "sbpjax/compiler/": "compiler",
    "sbpjax/cuda/": "compat",
    "sbpjax/distributed/": "distributed",
    "sbpjax/distributions/": "leaves",
    "sbpjax/env.py": "distributed",
    "sbpjax/fft.py": "functions",
    "sbpjax/func/": "trace",
    "sbpjax/func/__init__.py": "faces",
    "sbpjax/functions/": "functions",
    "sbpjax/graph/": "graph",
    "sbpjax/graph/__init__.py": "faces",
    "sbpjax/graph/auto_views.py": "inspect",
    "sbpjax/graph/capture.py": "trace",
    "sbpjax/graph/casts.py": "programs",
    "sbpjax/graph/communication.py": "inspect",
    "sbpjax/graph/cut.py": "programs",
    "sbpjax/graph/explain.py": "inspect",
    "sbpjax/graph/html.py": "inspect",
    "sbpjax/graph/profile.py": "inspect",
    "sbpjax/graph/shown.py": "inspect",
    "sbpjax/graph/signature.py": "trace",
    "sbpjax/graph/tree.py": "trace",
    "sbpjax/graph/watch.py": "trace",
    "sbpjax/hub.py": "compat",
    "sbpjax/linalg.py": "functions",
    "sbpjax/mock/": "compat",
    "sbpjax/mock_oneflow.py": "compat",
    "sbpjax/mock_torch.py": "compat",
    "sbpjax/nn/": "nn",
    "sbpjax/nn/__init__.py": "faces",
    "sbpjax/nn/from_flax.py": "trace",
    "sbpjax/nn/functional/": "functions",
    "sbpjax/nn/graph/": "compat",
    "sbpjax/nn/modules/": "compat",
    "sbpjax/nn/modules/__init__.py": "faces",
    "sbpjax/nn/parallel.py": "distributed",
    "sbpjax/nn/pure.py": "trace",
    "sbpjax/nn/utils/__init__.py": "faces",
    "sbpjax/nn/utils/clip_grad.py": "optim",
    "sbpjax/nn/utils/stateless.py": "trace",
    "sbpjax/one_embedding.py": "leaves",
    "sbpjax/ops/": "ops",
    "sbpjax/optim/": "optim",
    "sbpjax/pipeline/": "graph",
    "sbpjax/pipeline/explain.py": "inspect",
    "sbpjax/pipeline/report.py": "inspect",
    "sbpjax/processes/": "distributed",
    "sbpjax/processes/difference.py": "ground",
    "sbpjax/processes/store.py": "ground",
    "sbpjax/profiler/": "compat",
    "sbpjax/programs/": "programs",
    "sbpjax/run.py": "compat",
    "sbpjax/sbp/": "sbp",
    "sbpjax/sbp/call_sites.py": "compiler",
    "sbpjax/sbp/compile.py": "compiler",
    "sbpjax/sbp/cost.py": "planner",
    "sbpjax/sbp/eager.py": "compiler",
    "sbpjax/sbp/explain.py": "inspect",
    "sbpjax/sbp/gspmd.py": "compiler",
    "sbpjax/sbp/hlo.py": "compiler",
    "sbpjax/sbp/in_place.py": "compiler",
    "sbpjax/sbp/interop.py": "compiler",
    "sbpjax/sbp/kept.py": "ground",
    "sbpjax/sbp/links.py": "planner",
    "sbpjax/sbp/local_work.py": "planner",
    "sbpjax/sbp/lower.py": "compiler",
    "sbpjax/sbp/normalise.py": "programs",
    "sbpjax/sbp/outline.py": "programs",
    "sbpjax/sbp/plan/": "planner",
    "sbpjax/sbp/plan/signature.py": "programs",
    "sbpjax/sbp/plan/tie.py": "programs",
    "sbpjax/sbp/plan/types.py": "programs",
    "sbpjax/sbp/program_cache.py": "compiler",
    "sbpjax/sbp/recent.py": "ground",
    "sbpjax/sbp/rewrite.py": "programs",
    "sbpjax/sbp/roll.py": "programs",
    "sbpjax/sbp/rules/": "programs",
    "sbpjax/sbp/rules/report.py": "inspect",
    "sbpjax/sbp/shipping.py": "compiler",
    "sbpjax/sbp/transfer.py": "compiler",
    "sbpjax/sbp/visualize.py": "inspect",
    "sbpjax/simulation.py": "distributed",
    "sbpjax/special.py": "functions",
    "sbpjax/tensor/": "functions",
    **dict.fromkeys(
        [
            f"sbpjax/tensor/{name}.py"
            for name in """abstract argument_names binding bounds changes convert creation device dispatch dtype failure
            from_data generator indexing inplace like local mode oneflow_arguments op op_calls parked placed scalars
            shapes size splitting staged steps storage tensor traced types unread views wrong_call""".split()
        ],
        "tensor",
    ),
    "sbpjax/tensor/tape/": "tensor",
    "sbpjax/testing/": "testing",
    "sbpjax/tracing/": "trace",
    "sbpjax/unittest/": "testing",
    "sbpjax/utils/": "data",
    "sbpjax/utils/__init__.py": "faces",
    "sbpjax/utils/_lazy.py": "faces",
    "sbpjax/utils/hooks.py": "compat",
    "sbpjax/utils/libraries.py": "compat",
    "sbpjax/utils/model_zoo.py": "compat",
}


def room(file: str) -> str:
    """Return the room of a file.

    Raises:
        ValueError: the file has no place yet.
    """
    return PLACES[max((place for place in PLACES if file.startswith(place)), key=len)]
