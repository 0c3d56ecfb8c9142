"""Compiler options by platform: what is set, and that collectives go on while the devices compute."""

import re

import pytest

import sbpjax as flow
from benchmarks.absent import Case, graph_of
from sbpjax import nn
from sbpjax._core.compiler import hlo
from sbpjax._core.compiler.options import compiler_options

FUSION, PIPELINED = "xla_tpu_enable_async_collective_fusion", "xla_gpu_enable_pipelined_all_gather"
INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%([\w.-]+) = (.*)$")
DONE = re.compile(r"(?:all-gather|all-reduce|reduce-scatter)-done\(.*?%([\w.-]+)")
COMPUTES = re.compile(r" (?:fusion|dot|convolution|custom-call)\(")


class Place:
    def __init__(self, type, size):
        self.type, self.size = type, size


def test_options_are_those_of_the_platform():
    assert compiler_options(None, {}) is None
    assert compiler_options(Place("cpu", 8), {}) is None
    assert compiler_options(Place("tpu", 1), {}) is None
    assert compiler_options(Place("tpu", 4), {})[FUSION] is True
    assert compiler_options(Place("tpu", 4), {}, gathers=False) is None
    found = compiler_options(Place("cuda", 8), {})
    assert found["xla_gpu_reduce_scatter_combine_threshold_bytes"] == 30 * 2**20 // 8


def test_the_users_options_go_first_and_none_leaves_one_out():
    found = compiler_options(Place("tpu", 4), {FUSION: False, "xla_tpu_other": 3})
    assert found[FUSION] is False and found["xla_tpu_other"] == 3
    assert FUSION not in compiler_options(Place("tpu", 4), {FUSION: None})
    assert compiler_options(None, {"xla_cpu_enable_fast_math": True}) == {"xla_cpu_enable_fast_math": True}


def test_a_graph_hands_its_options_to_the_compiler():
    class Step(nn.Graph):
        def build(self, x):
            return x * 2

    graph = Step()
    graph.config.set_compiler_options({"xla_cpu_enable_fast_math": True})
    assert graph(flow.ones(3)).tolist() == [2.0] * 3
    assert "xla_cpu_enable_fast_math" in repr(graph.config)
    other = Step()
    other.config.set_compiler_options({"xla_no_such_option": True})
    with pytest.raises(Exception, match="xla_no_such_option"):
        other(flow.ones(3))


def overlapped(text: str) -> tuple[int, int]:
    """Return how many pairs of start and done a program has, and how many of them have computing between them."""
    begun, pairs, busy = {}, 0, 0
    for line in text.splitlines():
        found = INSTRUCTION.match(line)
        if found is None:
            begun = {} if line.endswith("{") else begun  # another computation
            continue
        name, rest = found.groups()
        done = DONE.search(rest)
        if done is not None and done.group(1) in begun:
            pairs, busy = pairs + 1, busy + begun.pop(done.group(1))
        elif "-start(" in rest:
            begun[name] = False
        elif COMPUTES.search(rest):
            begun = dict.fromkeys(begun, True)
    return pairs, busy


SMALL = {"layers": 2, "width": 512, "heads": 4, "context": 256, "batch": 8, "scan": False}
# Products that take as long as what is sent, so that it pays to wait for neither.
WIDE = {"layers": 2, "width": 2048, "heads": 16, "context": 1024, "batch": 16, "scan": True}


def step_on(machine, grid, size=SMALL, zero=True, **options):
    """Return the text of a GPT's step: Megatron's layouts over tensor, ZeRO-3 over data unless told otherwise."""
    graph, arguments, _ = graph_of(Case(machine, grid, **size))
    if not zero:
        graph.config.enable_zero(False)
    graph.config.set_compiler_options(options)
    graph.build_graph(*arguments)
    return graph.program.compile().as_text()


@pytest.mark.aot
@pytest.mark.parametrize(("grid", "share"), [((8, 1), 0.7), ((4, 2), 0.6)])
def test_on_gpus_collectives_go_on_while_others_compute(grid, share):
    pairs, busy = overlapped(step_on("h100:8", grid, WIDE))
    # The sums over tensor are waited for at once, those of gradients and the gathers of weights are not.
    assert pairs >= 4 and busy >= share * pairs


@pytest.mark.aot
def test_on_tpus_gathers_go_on_inside_products():
    with_options = step_on("v5p:2x2x1", (4, 1))
    without = step_on("v5p:2x2x1", (4, 1), **{FUSION: False})
    fused = re.findall(r"= .*? fusion\(.*?calls=%async_collective_fusion", with_options)
    assert len(fused) >= 4
    assert "async_collective_fusion" not in without
    assert "calls=%async_collective_fusion" not in step_on("v5p:2x2x1", (4, 1), zero=False)  # no weight is gathered
    bodies = re.findall(r"^%async_collective_fusion\S* \(.*?^}", with_options, re.MULTILINE | re.DOTALL)
    assert sum("convolution" in body and "all-gather(" in body for body in bodies) >= 4
    # What is fused is counted once.
    assert hlo.total_interconnect_bytes(with_options) == pytest.approx(hlo.total_interconnect_bytes(without), rel=0.02)
