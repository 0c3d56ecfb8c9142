"""Run several scripts of this folder one after another in one group of processes, whose start costs more than they do.

several.py "training.py" "checkpoints.py FOLDER"
"""

import os
import runpy
import shlex
import sys
from pathlib import Path

import sbpjax as flow

for command in sys.argv[1:]:
    name, *arguments = shlex.split(command)
    kept, sys.argv = sys.argv, [name, *arguments]
    environment = dict(os.environ)
    flow.manual_seed(0)
    runpy.run_path(str(Path(__file__).parent / name))
    flow.distributed.barrier()
    os.environ.clear()
    os.environ.update(environment)
    print(f"rank {flow.env.get_rank()} is done with {name}")
    sys.argv = kept
