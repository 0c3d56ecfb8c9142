"""Memory of a step by kind, and its traffic against the compiled program, on CPU's compiler and on absent chips."""

import numpy as np
import pytest

import sbpjax as flow
from examples.gpt.model import GPT, GPTConfig
from examples.gpt.sharding import TENSOR_PARALLEL
from sbpjax import nn, optim, sbp
from sbpjax._core.inspect import memory as memory_module
from sbpjax._core.inspect.display import bytes_text
from sbpjax._core.inspect.memory import Memory
from sbpjax._core.inspect.traffic import Traffic, planned_bytes
from sbpjax._core.planner.memory.cpu_liveness import spans_on
from sbpjax._core.planner.memory.liveness import LiveBytes, Spans
from sbpjax._core.programs.normalise import normalise
from sbpjax.errors import MixedTensorError, OutOfMemoryError
from tests.support import graphs

ARGUMENTS = 0.02  # what is known of layouts against the compiler's size of the arguments
ESTIMATE = 0.10  # the plan's guess of the whole against XLA:CPU's
LOOPS = 0.30  # the same where layers are loops
ABSENT = 0.05  # the compiled report against the compiler's figures, on absent chips
KIND = 0.02  # bytes of one kind of collective against the plan


def place(shape):
    return flow.placement("cpu", np.arange(np.prod(shape)).reshape(shape))


def gpt_step(where, axes, layers=3, width=128, batch=16, time=64, dtype=flow.float32):
    """The training step of an abstract GPT; ``axes`` says of each mesh axis: data, ZeRO-3 or tensor parallel."""
    with flow.abstract():
        model = GPT(GPTConfig(vocab_size=512, context=time, layers=layers, heads=8, width=width)).to(dtype)
    for name, p in model.named_parameters():
        tensor = TENSOR_PARALLEL.get(".".join(name.split(".")[-2:]), sbp.broadcast)
        kinds = {"tensor": tensor, "zero": sbp.split(0), "data": sbp.broadcast}
        p.data = p.data.to_global(where, [kinds[a] for a in axes])
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)
    with flow.abstract():
        codes = [sbp.broadcast if a == "tensor" else sbp.split(0) for a in axes]
        tokens = flow.zeros(batch, time, dtype=flow.int64, placement=where, sbp=codes)

    def step(x, y):
        optimizer.zero_grad()
        loss = model.loss(x, y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return model, flow.compile(step, state=(model, optimizer)), tokens


def local_step(model, x):
    optimizer = optim.Adam(model.parameters(), lr=1e-3)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return flow.compile(step, state=(model, optimizer)), x


def mlp():
    with flow.abstract():
        model = nn.Sequential(*[part for _ in range(4) for part in (nn.Linear(256, 256), nn.GELU())])
        return local_step(model, flow.zeros(512, 256))


def cnn():
    sizes = ((3, 16), (16, 32), (32, 32))
    layers = [m for i, o in sizes for m in (nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU())]
    return local_step(nn.Sequential(*layers, nn.MaxPool2d(2)), flow.zeros(16, 3, 32, 32))


def blocks():
    """Two equal layers of attention and MLP in a graph, which traces them once."""
    layers = [nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, batch_first=True) for _ in range(2)]
    model = nn.Sequential(*layers)
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)

    return graphs.Train(model, optimizer), flow.zeros(8, 64, 64)


MODELS = {"mlp": mlp, "cnn": cnn, "blocks": blocks}


def figures(compiled):
    (program,) = compiled._programs.values()
    return program.compile().memory_analysis()


class TestReport:
    def test_standing_tensors_are_known_from_layouts(self):
        model, step, tokens = gpt_step(place([2, 4]), ("data", "tensor"))
        found = step.memory(tokens, tokens)
        local = sum(np.prod(p.layout.local_shape) * 4 for p in model.parameters())
        assert found.parameters == local
        assert found.optimizer == pytest.approx(2 * local, abs=64)
        assert found.buffers == 0
        assert found.inputs == pytest.approx(2 * 8 * 64 * 8, abs=256)
        assert found.arguments == pytest.approx(figures(step).argument_size_in_bytes, rel=ARGUMENTS)

    @pytest.mark.parametrize("axes", [("data",), ("zero",), ("tensor",)])
    def test_the_compiled_report_is_the_compilers(self, axes):
        _, step, tokens = gpt_step(place([8]), axes)
        found, given = step.memory(tokens, tokens), figures(step)
        assert found.compiled
        whole = given.argument_size_in_bytes + given.temp_size_in_bytes + given.generated_code_size_in_bytes
        whole += given.output_size_in_bytes - given.alias_size_in_bytes
        assert found.total == pytest.approx(whole, rel=ARGUMENTS)
        assert found.during == given.temp_size_in_bytes

    @pytest.mark.parametrize("axes", [("data",), ("zero",), ("zero", "tensor")])
    def test_the_plans_guess_is_near(self, axes):
        _, step, tokens = gpt_step(place([8] if len(axes) == 1 else [2, 4]), axes)
        guess = step.memory(tokens, tokens, compiled=False)
        found = step.memory(tokens, tokens)
        assert not guess.compiled
        assert guess.arguments == found.arguments
        assert guess.total == pytest.approx(found.total, rel=ESTIMATE)

    @pytest.mark.parametrize("model", ["mlp", "cnn", "blocks"])
    def test_the_guess_for_one_device_is_near(self, model):
        with flow.abstract():
            step, x = MODELS[model]()
        guess = step.memory(x, compiled=False)
        assert guess.total == pytest.approx(step.memory(x).total, rel=ESTIMATE)

    def test_an_estimate_compiles_nothing(self, compilations):
        _, step, tokens = gpt_step(place([8]), ("zero",), layers=2)
        with compilations as count:
            step.memory(tokens, tokens, compiled=False)
        assert count.count == 0

    def test_zero_divides_the_state(self):
        sizes, left = {}, {}
        for axes in (("data",), ("zero",)):
            _, step, tokens = gpt_step(place([8]), axes, layers=2)
            sizes[axes[0]] = step.memory(tokens, tokens, compiled=False)
            (program,) = step._programs.values()
            counted = spans_on("cpu", program.plan.program)
            left[axes[0]] = counted(program.plan.program, program.plan).total_by_kind().activations
        assert sizes["zero"].parameters == sizes["data"].parameters // 8
        assert sizes["zero"].optimizer == pytest.approx(sizes["data"].optimizer / 8, abs=64)
        assert sizes["data"].gathered == 0 < sizes["zero"].gathered
        assert left["zero"] == pytest.approx(left["data"], rel=0.01)
        # the fullest moment is earlier where gradients are divided: no layer has been through its backward then
        assert sizes["data"].activations <= sizes["zero"].activations <= left["zero"]

    def test_one_device_and_buffers(self):
        with flow.abstract():
            model = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64))
            step, x = local_step(model, flow.zeros(32, 64))
        found = step.memory(x)
        assert found.buffers == 64 * 4 * 2 + 8
        assert found.parameters == (64 * 64 + 3 * 64) * 4
        assert found.capacity is None and found.fits is None

    def test_text(self):
        report = Memory(parameters=2_000_000, optimizer=4_000_000, activations=95_000_000_000, capacity=95 * 10**9)
        assert str(report).splitlines() == [
            "memory per device of , estimated from the plan",
            "parameters        2.0 MB",
            "optimizer state   4.0 MB",
            "activations      95.0 GB   made by the forward, read by the backward",
            "gradients            0 B",
            "temporaries          0 B",
            "total            95.0 GB   of 95.0 GB: does not fit",
        ]
        assert "<td>parameters</td><td>2.0 MB</td>" in report._repr_html_()
        assert [bytes_text(n) for n in (0, 999, 1000, 999_960, 10**13)] == [
            "0 B",
            "999 B",
            "1.0 kB",
            "1.0 MB",
            "10000.0 GB",
        ]

    def test_a_program_that_does_not_fit_is_told_in_four_parts(self, monkeypatch):
        step, x = mlp()
        step.memory(x, compiled=False)
        (program,) = step._programs.values()

        def full():
            raise RuntimeError("RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 120.1G of 95.7G hbm.")

        monkeypatch.setattr(program, "compile", full)
        with pytest.raises(OutOfMemoryError) as error:
            step.memory(x)
        lines = str(error.value).splitlines()
        assert [line.split(":")[0].strip() for line in lines[1:]] == ["seen", "rule", "fix"]
        assert "Used 120.1G of 95.7G hbm" in lines[1]
        monkeypatch.setattr(program, "compile", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            step.memory(x)

    def test_the_compilers_figure_is_shared_out(self):
        share = memory_module._shared_out
        assert share(LiveBytes(100, 20, 30, 7), 200) == LiveBytes(100, 20, 30, 50)
        assert share(LiveBytes(100, 50, 50, 7), 100) == LiveBytes(50, 25, 25, 0)


class TestGraph:
    def graph(self, scan: bool, checkpoint: bool = False, axes=("data", "zero")):
        model, _, tokens = gpt_step(place([2, 4]), axes, layers=6)
        optimizer = optim.AdamW(model.parameters(), lr=1e-3)

        class Train(graphs.Train):
            loss = staticmethod(lambda model, x, y: model.loss(x, y))

        graph = Train(model, optimizer)
        graph.config.enable_block_scan(scan)
        for block in graph.model.blocks if checkpoint else ():
            block.to(nn.graph.GraphModule).activation_checkpointing = True
        return graph, tokens

    def test_stacks_are_what_their_layers_are(self):
        found = []
        for scan in (False, True):
            graph, tokens = self.graph(scan)
            found.append(graph.memory(tokens, tokens, compiled=False))
        assert found[0].parameters == found[1].parameters
        assert found[0].optimizer == pytest.approx(found[1].optimizer, abs=64)

    def test_loops_are_near_the_compilers_figures(self):
        graph, tokens = self.graph(True)
        guess = graph.memory(tokens, tokens, compiled=False)
        found = graph.memory()
        assert guess.total == pytest.approx(found.total, rel=LOOPS)
        (program,) = graph._g.programs.values()
        assert found.arguments == pytest.approx(
            program.compile().memory_analysis().argument_size_in_bytes, rel=ARGUMENTS
        )

    def test_a_checkpoint_holds_less(self):
        kept, again = (self.graph(True, checkpoint)[0:2] for checkpoint in (False, True))
        before, after = (g.memory(t, t, compiled=False) for g, t in (kept, again))
        assert after.activations + after.temporaries < 0.6 * (before.activations + before.temporaries)

    def test_traffic_of_loops(self):
        graph, tokens = self.graph(True)
        found = graph.traffic(tokens, tokens)
        for kind in ("all-gather", "reduce-scatter"):
            assert abs(found.difference(kind)) < KIND, str(found)
        assert abs(found.difference()) < KIND, str(found)


class TestSpans:
    def spans(self, fn, *shapes):
        import jax

        from sbpjax._core.programs.normalise import normalise

        return Spans(normalise(jax.make_jaxpr(fn)(*(jax.ShapeDtypeStruct(s, np.float32) for s in shapes))))

    def test_a_product_is_stored_and_a_pointwise_chain_is_not(self):
        held = self.spans(lambda x, w: ((x @ w) * 2 + 1).sum(), (64, 32), (32, 16)).at_peak()
        assert held.total == 64 * 16 * 4 + 0

    def test_what_the_backward_reads_is_an_activation(self):
        import jax
        import jax.numpy as jnp

        def loss(w1, w2, x):
            return (jnp.tanh(x @ w1) @ w2).sum()

        spans = self.spans(jax.grad(loss, argnums=(0, 1)), (32, 16), (16, 8), (64, 32))
        assert spans.total_by_kind().activations == 64 * 16 * 4  # the tanh; its derivative is computed from it

    def test_a_loop_holds_what_its_body_holds(self):
        import jax

        def fn(x, w):
            return jax.lax.scan(lambda c, _: (((c @ w) @ w), None), x, None, length=3)[0].sum()

        assert self.spans(fn, (64, 32), (32, 32)).at_peak().total >= 2 * 64 * 32 * 4

    def test_a_tpus_estimate_is_what_its_compiler_stores(self, monkeypatch):
        """Of an MLP XLA:CPU keeps more than the products, and the TPU compiler nothing else."""
        from sbpjax._core.planner.memory.tpu_liveness import TpuSpans

        step, x = mlp()
        here = step.memory(x, compiled=False)
        monkeypatch.setattr(memory_module, "_device_type", lambda program: "tpu")
        there = step.memory(x, compiled=False)
        (program,) = step._programs.values()
        held = TpuSpans(
            normalise(program.jaxpr) if program.plan is None else program.plan.program, program.plan
        ).at_peak()
        assert (there.activations, there.gradients, there.temporaries) == (
            held.activations, held.gradients, held.temporaries
        )  # fmt: skip
        assert there.during < here.during

    def test_alive_at_once_and_ever(self):
        spans = self.spans(lambda x, w: ((x @ w) @ w) @ w, (64, 32), (32, 32))
        assert spans.at_peak().total == 2 * 64 * 32 * 4 == spans.total_by_kind().total


class TestTraffic:
    def test_the_plan_by_kind_is_the_whole_plan(self):
        for axes, shape in ((("zero",), [8]), (("zero", "tensor"), [2, 4]), (("tensor",), [8])):
            _, step, tokens = gpt_step(place(shape), axes, layers=2)
            plan = step.plan(tokens, tokens)
            assert sum(planned_bytes(plan).values()) == plan.bytes

    def test_zero_gathers_and_scatters_what_was_planned(self):
        _, step, tokens = gpt_step(place([8]), ("zero",), layers=2)
        found = step.traffic(tokens, tokens)
        for kind in ("all-gather", "reduce-scatter"):
            assert abs(found.difference(kind)) < KIND
            assert found.counts[kind] > 0
        assert abs(found.difference()) < KIND

    def test_loops_count_their_turns(self):
        where = place([8])
        x = flow.zeros(256, 256, placement=where, sbp=sbp.split(0))

        def loop(x):
            import jax

            from sbpjax._core.tensor.dispatch.dispatch import apply

            def turns(x):
                return jax.lax.scan(lambda c, _: (c - c.max(0) + c.max(1, keepdims=True), None), x, None, length=5)[0]

            return apply(turns, x)

        found = flow.compile(loop).traffic(x)
        assert found.planned == found.compiled
        assert sum(found.counts.values()) % 5 == 0

    @pytest.mark.parametrize("dtype, expected", [(flow.bfloat16, True), (flow.float32, False)])
    def test_what_a_cpu_sends_wider_is_said(self, dtype, expected):
        x = flow.zeros(8, 8, dtype=dtype, placement=place([4]), sbp=sbp.split(0))
        text = str(flow.compile(lambda x: x.to_global(sbp=sbp.broadcast) + 1).traffic(x))
        assert ("XLA sends 16-bit floats as float32 on CPUs" in text) == expected

    def test_text(self):
        found = Traffic(
            {"all-gather": 1000, "all-reduce": 100}, {"all-gather": 1010, "all-to-all": 5}, {"all-gather": 3}
        )
        assert str(found).splitlines() == [
            "kind        planned  compiled  difference  number",
            "all-gather   1.0 kB    1.0 kB      +1.0 %       3",
            "all-reduce    100 B       0 B    -100.0 %       0",
            "all-to-all      0 B       5 B         new       0",
            "total        1.1 kB    1.0 kB      -7.7 %       3",
        ]

    def test_one_device_moves_nothing(self):
        step, x = mlp()
        with pytest.raises(MixedTensorError, match="moves nothing"):
            step.traffic(x)


@pytest.mark.aot
@pytest.mark.slow
@pytest.mark.parametrize("name", ["v5p:2x2x2", "h100:8"])
class TestAbsent:
    def test_a_gpt_on_chips_that_are_not_there(self, name):
        if name.startswith("h100"):
            pytest.importorskip("jax_cuda12_plugin", reason="needs jax-cuda12-plugin and jax-cuda12-pjrt (extra `aot`)")
        where = flow.placement.topology(name, [2, 4])
        _, step, tokens = gpt_step(
            where, ("zero", "tensor"), layers=2, width=1024, time=512, batch=8, dtype=flow.bfloat16
        )
        found, given = step.memory(tokens, tokens), figures(step)
        assert found.arguments == pytest.approx(given.argument_size_in_bytes, rel=ABSENT)
        whole = given.argument_size_in_bytes + given.temp_size_in_bytes + given.generated_code_size_in_bytes
        whole += given.output_size_in_bytes - given.alias_size_in_bytes
        assert found.total == pytest.approx(whole, rel=ABSENT)
        assert found.fits and found.capacity > 75e9
        moved = step.traffic(tokens, tokens)
        for kind in ("all-gather", "reduce-scatter", "all-to-all"):
            assert abs(moved.difference(kind)) < KIND, str(moved)
        assert abs(moved.difference()) < KIND
