"""Profiles: a trace on disk, a table by op and module that adds up, and a state that is as before."""

import gzip
import json

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax._core.inspect.profile import _busy, _own_times
from sbpjax.errors import GraphError
from sbpjax.graph.program.module_names import Names
from tests.support import graphs


def made(place=None):
    flow.manual_seed(1)
    model = nn.Sequential(nn.Linear(32, 64), nn.Dropout(0.5), nn.Sequential(nn.Linear(64, 32)))
    x = flow.randn(16, 32)
    if place is not None:
        model.to_global(place, "B")
        x = x.to_global(place, "S0")
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return graphs.Train(model, optimizer, schedule=flow.optim.lr_scheduler.StepLR(optimizer, 1)), x


@pytest.mark.parametrize("ranks", [None, [0, 1]])
def test_a_profile_names_modules_and_leaves_everything_as_it_was(tmp_path, ranks):
    place = None if ranks is None else flow.placement("cpu", ranks)
    here = 1 if place is None else len(place.mesh.local_devices)  # of several processes some may have none
    graph, x = made(place)
    graph(x)
    before = {k: v.numpy() for k, v in graph.model.to(nn.Module).state_dict().items()}
    momentum = [t.numpy() for t in graph._g.optimizers[0].optimizer.state_tensors()]
    lr, random = graph._g.optimizers[0].optimizer.param_groups[0]["lr"], flow.get_rng_state().numpy()
    own = graph.program._compiled
    found = graph.profile(x, steps=2, directory=tmp_path)
    for name, value in graph.model.to(nn.Module).state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name])
    for t, value in zip(graph._g.optimizers[0].optimizer.state_tensors(), momentum, strict=True):
        np.testing.assert_array_equal(t.numpy(), value)
    assert graph._g.optimizers[0].optimizer.param_groups[0]["lr"] == lr
    np.testing.assert_array_equal(flow.get_rng_state().numpy(), random)
    assert graph.program._compiled is own

    assert found.steps == 2 and found.devices == here
    times = found.by_module()
    products = [r for r in found.rows if r.place.op == "dot_general"]
    ways = {(row.place.module, row.place.backward) for row in products}
    if here:
        assert {"model.0", "model.2.0"} <= times.keys() and "SGD" in times
        assert {("model.0", False), ("model.2.0", False), ("model.2.0", True)} <= ways
    else:
        assert found.rows == []
    assert all(row.us >= 0 and row.calls > 0 for row in found.rows)
    assert [row.us for row in found.rows] == sorted((row.us for row in found.rows), reverse=True)
    assert 0 <= found.unattributed_us <= found.step_us
    assert tmp_path in (found.directory, found.directory.parent)
    files = list(found.directory.glob("**/*.trace.json.gz"))
    assert len(files) == 1 and list(found.directory.glob("**/*.xplane.pb"))
    with gzip.open(files[0]) as file:
        assert json.load(file)["traceEvents"]
    after = graph(x)
    assert np.isfinite(after.item())


def test_zeros_of_the_last_signature_and_text(tmp_path):
    graph, x = made()
    with pytest.raises(GraphError, match="not built"):
        graph.profile(steps=1)
    graph.compile(x)
    found = graph.profile(steps=1, directory=tmp_path)
    lines = str(found).splitlines()
    assert lines[0].startswith(f"profile of {graph.name}, 1 step on 1 device: ")
    assert "unattributed" in lines[-2] and lines[-1].startswith(f"trace: {tmp_path}")
    assert [line for line in found.table(top=3) if line[3].endswith(" more")]
    shares = [float(row[0].rstrip(" %")) for row in found.table(top=1000)]
    assert abs(sum(shares) - 100) < 0.1 * len(shares)
    assert found._repr_html_().count("<tr>") == len(found.table()) + 1
    with pytest.raises(GraphError, match=r"(?s)profile\(steps=0\).*one step or more"):
        graph.profile(steps=0)


def event(ts, dur, tid=1, device=0):
    return {"ts": ts, "dur": dur, "tid": tid, "args": {"device_ordinal": device}}


def test_time_inside_another_instruction_counts_once():
    loop, first, second, other = event(0, 100), event(10, 30), event(50, 20), event(0, 40, tid=2)
    own = {id(e): value for e, value in _own_times([second, loop, other, first])}
    assert [own[id(e)] for e in (loop, first, second, other)] == [50, 30, 20, 40]
    assert _busy([loop, first, second, other, event(200, 5)]) == 105
    assert _busy([event(0, 10), event(5, 10, device=1)]) == 20


def test_names_of_modules_in_what_the_compiler_says():
    graph, _ = made()
    names = Names(graph)
    for text, place in {
        "jit(step)/jit(body)/shard_map/model/2/0/transpose(jvp())/dot_general": ("model.2.0", "dot_general", True),
        "jit(body)/model/0/jvp()/add": ("model.0", "add", False),
        "jit(body)/while/body/model/2/mul;broadcast": ("model.2", "mul", False),
        "jit(body)/SGD/sub": ("SGD", "sub", False),
        "transpose(jvp(model))/0/mul": ("model.0", "mul", True),
        "jit(body)/elsewhere/mul": ("", "mul", False),
        "mul": ("", "mul", False),
        "": ("", "", False),
    }.items():
        assert names.place(text) == place, text
