"""Step time, memory and layouts of transformers on clusters, from their sizes alone.

    python -m sbpjax.plan llama-70b --machine v5p:8x16x16 --batch 4M      # docs/how_to/plan_clusters.md

    step = Step(transformer("llama-70b"), Layout(fsdp=32, tensor=8, recompute="full"), machine("h100:32x8"), 8192, 512)
    print(step.seconds, step.mfu, peak(step).total, explain_costs(step))

    simulate(Job(hosts=2048, days=54, failures_per_day=7.8)).goodput      # a month with failures

`sbpjax.auto` chooses the layout of every tensor of a traced program on a given mesh; this chooses the mesh's sizes.
"""

from ._core.inspect.clusters.command import main as main
from ._core.inspect.clusters.report import SearchReport as SearchReport
from ._core.inspect.clusters.report import differences as differences
from ._core.inspect.clusters.report import explain_costs as explain_costs
from ._core.planner.clusters.job import Job as Job
from ._core.planner.clusters.job import Outcome as Outcome
from ._core.planner.clusters.job import simulate as simulate
from ._core.planner.clusters.layout import RECOMPUTE as RECOMPUTE
from ._core.planner.clusters.layout import Layout as Layout
from ._core.planner.clusters.machine import Machine as Machine
from ._core.planner.clusters.machine import machine as machine
from ._core.planner.clusters.memory import Memory as Memory
from ._core.planner.clusters.memory import peak as peak
from ._core.planner.clusters.search import Found as Found
from ._core.planner.clusters.search import search as search
from ._core.planner.clusters.step import Cost as Cost
from ._core.planner.clusters.step import Step as Step
from ._core.planner.clusters.transformer import MODELS as MODELS
from ._core.planner.clusters.transformer import Transformer as Transformer
from ._core.planner.clusters.transformer import transformer as transformer

if __name__ == "__main__":
    main()
