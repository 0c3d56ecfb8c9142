"""`graph.model`: the module as a graph sees it: options, containers, attributes, hooks, checkpointing."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest
from sbpjax.nn.graph import GraphModule, GraphTensor, Proxy, ProxyModule

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import GraphConfigError, GraphTypeError
from sbpjax.nn import functional as F
from tests.support import graphs


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return x + self.drop(self.down(F.gelu(self.up(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(3)])
        self.heads = nn.ModuleDict({"a": nn.Linear(8, 4), "b": nn.Linear(8, 2)})
        self.register_buffer("scale", flow.ones(1))
        self.factor = 1.0

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.heads["a"](x) * self.scale * self.factor


def train(model):
    return graphs.Train(model, flow.optim.SGD(model.parameters(), lr=0.1))


def made():
    flow.manual_seed(0)
    model = Model()
    return model, train(model)


def test_what_a_proxy_is():
    model, graph = made()
    proxy = graph.model
    assert type(proxy) is ProxyModule and isinstance(proxy, (Proxy,)) and isinstance(proxy, Model)
    assert isinstance(proxy, nn.Module) and not isinstance(proxy, nn.Linear)
    assert proxy is graph.model and proxy.blocks[1] is graph.model.blocks[1]
    assert proxy.to(nn.Module) is model and proxy.origin is model and proxy.blocks[1].origin is model.blocks[1]
    assert proxy == model and hash(proxy) == hash(model)
    assert isinstance(proxy.blocks[0].up, nn.Linear) and type(proxy.blocks[0].up) is ProxyModule
    assert repr(proxy.heads.a) == f"(MODULE:model.heads.a:{model.heads['a']!r})"


def test_attributes_pass_through_in_both_directions():
    model, graph = made()
    graph.model.factor = 2.0
    assert model.factor == graph.model.factor == 2.0
    graph.model.extra = nn.ReLU()
    assert model.extra is graph.model.extra.origin and "extra" in model._modules
    graph.model.other = graph.model.blocks[0]
    assert model.other is model.blocks[0]
    del graph.model.extra
    assert not hasattr(graph.model, "extra")
    assert graph.model.blocks[0].up.weight is model.blocks[0].up.weight
    assert graph.model.scale is model.scale
    assert {"origin", "blocks", "forward"} <= set(dir(graph.model))
    graph.model.eval()
    assert not model.blocks[2].drop.training and graph.model.train() is graph.model


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda proxy: pickle.loads(pickle.dumps(proxy))])
def test_a_copy_is_of_the_module_and_belongs_to_no_graph(copied):
    _, graph = made()
    found = copied(graph.model)
    assert type(found) is Model and found is not graph.model.origin
    np.testing.assert_array_equal(found.blocks[0].up.weight.numpy(), graph.model.blocks[0].up.weight.numpy())
    assert type(copy.deepcopy(graph.model.blocks[1])) is Block


def test_containers():
    model, graph = made()
    blocks = graph.model.blocks
    assert len(blocks) == 3 and bool(blocks)
    assert [b.origin for b in blocks] == list(model.blocks)
    assert blocks[-1].origin is model.blocks[2] and model.blocks[0] in blocks and blocks[0] in blocks
    part = blocks[1:]
    assert len(part) == 2 and isinstance(part, nn.ModuleList) and part[0] is blocks[1] and [*part][1] is blocks[2]
    assert list(graph.model.heads) == ["a", "b"] and "a" in graph.model.heads
    assert [m.origin for m in graph.model.heads.values()] == list(model.heads.values())
    assert [(k, m.origin) for k, m in graph.model.heads.items()] == list(model.heads.items())
    graph.model.blocks[0] = nn.Identity()
    assert isinstance(model.blocks[0], nn.Identity)


def test_traversal_gives_proxies_under_their_names():
    model, graph = made()
    proxy = graph.model
    assert [(n, m.origin) for n, m in proxy.named_modules()] == list(model.named_modules())
    assert all(type(m) is ProxyModule for m in proxy.modules())
    assert [m.origin for m in proxy.children()] == list(model.children())
    assert proxy.get_submodule("blocks.1.up") is proxy.blocks[1].up
    assert dict(proxy.named_parameters()).keys() == dict(model.named_parameters()).keys()
    assert list(proxy.state_dict()) == list(model.state_dict())
    before = {k: v + 1 for k, v in model.state_dict().items()}
    proxy.load_state_dict(before)
    np.testing.assert_array_equal(model.heads["a"].bias.numpy(), before["heads.a.bias"].numpy())


def test_options_belong_to_one_graph():
    model, graph = made()
    other = train(model)
    options = graph.model.blocks[0].to(GraphModule)
    assert options is graph.model.blocks[0].to(nn.graph.GraphModule)
    assert isinstance(options, GraphModule) and options.type == "MODULE"
    assert (options.name_prefix, options.name, options.scope) == ("model.blocks.", "0", "model.blocks.0")
    assert options.prev_scope == "model.blocks"
    options.activation_checkpointing = True
    assert not other.model.blocks[0].to(GraphModule).activation_checkpointing
    assert graph.model.blocks[0].config is options
    assert not graph.model.blocks[1].to(GraphModule).activation_checkpointing


def test_stages_are_stored_and_checked():
    _, graph = made()
    place = flow.placement("cpu", [0, 1])
    for i, block in enumerate(graph.model.blocks):
        block.to(GraphModule).set_stage(i, place)
    assert [b.to(GraphModule).stage_id for b in graph.model.blocks] == [0, 1, 2]
    assert graph.model.blocks[0].to(GraphModule).stage_placement == place
    assert "stage_id=1" in repr(graph.model.blocks[1].to(GraphModule))
    with pytest.raises(GraphConfigError, match=r"(?s)set_stage of model.blocks.0.*stage_id=-1"):
        graph.model.blocks[0].to(GraphModule).set_stage(-1)
    with pytest.raises(GraphTypeError, match="placement of type str"):
        graph.model.blocks[0].to(GraphModule).set_stage(0, "cpu")


def test_tensors_have_options_too():
    _, graph = made()
    options = graph.model.blocks[0].up.weight.to(GraphTensor)
    assert options.type == "TENSOR" and (options.name_prefix, options.name) == ("model.blocks.0.up.", "weight")
    options.set_stage(1)
    assert graph.model.blocks[0].up.weight.to(GraphTensor).stage_id == 1
    with pytest.raises(GraphTypeError, match="parameters and buffers"):
        graph.model.to(GraphTensor)


def test_to_does_what_the_module_does_for_anything_else():
    model, graph = made()
    assert graph.model.to(flow.bfloat16) is graph.model
    assert model.heads["a"].weight.dtype == flow.bfloat16
    assert graph.model.to(flow.float32).origin is model


def test_a_proxy_runs_outside_of_build_as_the_module():
    model, graph = made()
    model.eval()
    x = flow.randn(2, 8)
    np.testing.assert_array_equal(graph.model(x).numpy(), model(x).numpy())


def test_parts_of_a_model_run_in_build():
    def parts(model, x):
        for block in model.blocks[:2]:
            x = block(x)
        return model.heads["b"](x), model.heads.a.forward(x), x @ model.heads.a.weight.T

    model = Model().eval()
    x = flow.randn(2, 8)
    hidden = model.blocks[1](model.blocks[0](x))
    b, a, product = graphs.graph_of(parts, model)(x)
    np.testing.assert_allclose(b.numpy(), model.heads["b"](hidden).numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(a.numpy(), model.heads["a"](hidden).numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(product.numpy(), (hidden @ model.heads["a"].weight.T).numpy(), rtol=1e-5, atol=1e-6)


def test_forward_sees_the_module_itself():
    seen = []

    class Super(Block):
        def forward(self, x):
            seen.append(type(self))
            return super().forward(x)

    graphs.graph_of(lambda block, x: block(x), Super().eval())(flow.ones(2, 8))
    assert seen == [Super]


def test_hooks_run():
    model, graph = made()
    calls = []
    model.blocks[0].register_forward_pre_hook(lambda m, args: calls.append("pre"))
    model.blocks[0].register_forward_hook(lambda m, args, out: (calls.append("post"), out * 0)[1])
    model.blocks[1].register_full_backward_hook(lambda m, gi, go: calls.append("backward"))
    graph.model.blocks[2].register_forward_hook(lambda m, args, out: calls.append("proxy"))
    model.eval()
    graph(flow.ones(2, 8))
    assert calls == ["pre", "post", "proxy", "backward"]


# -- activation checkpointing


def losses(checkpoint, place=None, steps=3):
    flow.manual_seed(0)
    model = Model()
    x = flow.tensor(np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32))
    if place is not None:
        model.to_global(place, "B")
        x = x.to_global(place, "S0")
    graph = train(model)
    for block in graph.model.blocks:
        block.to(GraphModule).activation_checkpointing = checkpoint
    flow.manual_seed(1)
    return [graph(x).item() for _ in range(steps)], graph


@pytest.mark.parametrize("policy", [True, "nothing", "dots", "dots_with_no_batch_dims", "offload_dots", "everything"])
@pytest.mark.parametrize("place", [None, flow.placement("cpu", [0, 1, 2, 3])], ids=["local", "data"])
def test_checkpointing_changes_no_number(policy, place):
    expected, _ = losses(False)
    np.testing.assert_allclose(losses(policy, place)[0], expected, rtol=2e-5)


def test_checkpointing_computes_again():
    _, plain = losses(False, steps=1)
    _, checkpointed = losses(True, steps=1)

    def flops(graph):
        return graph.program.compile().cost_analysis()["flops"]

    assert flops(checkpointed) > 1.1 * flops(plain)


def test_a_change_of_checkpointing_compiles_anew():
    _, graph = made()
    x = flow.ones(2, 8)
    graph(x)
    graph.model.blocks[0].to(GraphModule).activation_checkpointing = True
    graph(x)
    assert len(graph._g.programs) == 2


def test_options_of_the_module_itself_count_in_every_graph():
    model, graph = made()
    x = flow.ones(2, 8)
    graph(x)
    plain = graph.program.compile().cost_analysis()["flops"]
    assert model.to(nn.Module) is model and model.scale.to(flow.Tensor) is model.scale
    for block in model.blocks:
        block.to(GraphModule).activation_checkpointing = True
    assert model.blocks[0].to(GraphModule) is model.blocks[0].to(GraphModule)
    graph(x)
    assert graph.program.compile().cost_analysis()["flops"] > 1.1 * plain
    graph.model.blocks[0].to(GraphModule).activation_checkpointing = "everything"
    graph(x)
    assert len(graph._g.programs) == 3


def test_unknown_policies_are_refused():
    _, graph = made()
    with pytest.raises(GraphConfigError, match=r"(?s)of model.blocks.0.*'some'.*'dots'"):
        graph.model.blocks[0].to(GraphModule).activation_checkpointing = "some"


def test_a_graph_is_freed_with_its_proxies():
    _, graph = made()
    graph(flow.ones(2, 8))
    graph.model.blocks[0].to(GraphModule).activation_checkpointing = True
    ref = weakref.ref(graph)
    del graph
    gc.collect()
    assert ref() is None
