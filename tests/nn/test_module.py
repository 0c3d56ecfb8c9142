"""`Module` against PyTorch: registration, traversal, modes, state, hooks, text; and `to_global`."""

from collections import OrderedDict

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import StateDictError
from sbpjax.utils.global_view import to_global, to_local

CPU4 = ("cpu", [0, 1, 2, 3])


def network(package):
    """The same small network in either package."""

    class Net(package.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = package.nn.Sequential(package.nn.Linear(4, 6), package.nn.ReLU(), package.nn.Linear(6, 2))
            self.heads = package.nn.ModuleList([package.nn.Linear(2, 2), package.nn.Linear(2, 2, bias=False)])
            self.by_name = package.nn.ModuleDict({"a": package.nn.Identity()})
            self.scale = package.nn.Parameter(package.ones(2))
            self.register_buffer("seen", package.zeros(1))
            self.register_buffer("scratch", package.zeros(1), persistent=False)
            self.tied = self.heads[0]

        def forward(self, x):
            x = self.by_name["a"](self.body(x)) * self.scale
            return self.heads[1](self.heads[0](x)) + self.tied(x)

    return Net()


def pair():
    ours, theirs = network(flow), network(torch)
    ours.load_state_dict({k: flow.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    return ours, theirs


def test_names_are_torchs():
    ours, theirs = network(flow), network(torch)
    for method in ("named_parameters", "named_buffers", "named_modules", "named_children"):
        assert [n for n, _ in getattr(ours, method)()] == [n for n, _ in getattr(theirs, method)()], method
        if method != "named_children":
            mine = [n for n, _ in getattr(ours, method)(remove_duplicate=False)]
            assert mine == [n for n, _ in getattr(theirs, method)(remove_duplicate=False)], method
    assert [n for n, _ in ours.named_parameters(prefix="x", recurse=False)] == ["x.scale"]
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert list(ours.state_dict(prefix="m.")) == list(theirs.state_dict(prefix="m."))
    assert len(list(ours.parameters())) == len(list(theirs.parameters()))


def test_repr_is_torchs():
    assert repr(network(flow)) == repr(network(torch))


def test_forward_and_gradients_equal_torchs():
    ours, theirs = pair()
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    a, b = ours(flow.tensor(x)), theirs(torch.tensor(x))
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-6)
    a.sum().backward()
    b.sum().backward()
    for (name, p), q in zip(ours.named_parameters(), theirs.parameters()):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-5, atol=1e-6, err_msg=name)


def test_train_eval_apply_and_requires_grad():
    net = network(flow)
    assert all(m.training for m in net.modules())
    assert net.eval() is net and not any(m.training for m in net.modules())
    net.body.train()
    assert net.body[0].training and not net.training
    with pytest.raises(ValueError, match="boolean"):
        net.train("yes")
    visited = []
    net.apply(lambda m: visited.append(type(m).__name__))
    assert visited[-1] == "Net" and visited.index("Linear") < visited.index("Sequential")
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())


def test_attributes_move_between_tables():
    net = network(flow)
    net.thing = 5
    net.thing = nn.Parameter(flow.ones(1))
    assert "thing" in dict(net.named_parameters()) and "thing" not in net.__dict__
    net.thing = nn.Linear(1, 1)
    assert "thing" not in dict(net.named_parameters()) and "thing" in dict(net.named_children())
    del net.thing
    assert not hasattr(net, "thing")
    net.seen = flow.ones(1)
    assert net.seen is dict(net.named_buffers())["seen"]
    net.scale = None
    assert "scale" not in dict(net.named_parameters()) and net.scale is None
    assert {"body", "scale", "seen", "forward"} <= set(dir(net))


MISUSES = {
    "setattr(m, 'scale', 3.0)": "cannot assign 'float' as parameter 'scale'",
    "setattr(m, 'body', 3.0)": "cannot assign 'float' as child module 'body'",
    "setattr(m, 'seen', 3.0)": "cannot assign 'float' as buffer 'seen'",
    "m.register_parameter('a.b', None)": "contain",
    "m.register_parameter('', None)": "empty string",
    "m.register_parameter(3, None)": "should be a string",
    "m.register_parameter('body', None)": "already exists",
    "m.register_parameter('forward', None)": "already exists",
    "m.register_parameter('w', T.ones(1))": "as parameter .* an nn.Parameter or None",
    "m.register_buffer('body', T.ones(1))": "already exists",
    "m.register_buffer('w', 1)": "as buffer .* an sbpjax.Tensor or None",
    "m.register_buffer(None, T.ones(1))": "should be a string",
    "m.add_module('w', 1)": "is not a Module subclass",
    "m.add_module('w', T.nn.ReLU)": "is not a Module subclass",
    "m.add_module('scale', T.nn.ReLU())": "already exists",
    "m.nothing": "'Net' object has no attribute 'nothing'",
    "m.bdy": "fix:  perhaps 'body'",
    "m.get_submodule('body.9')": "has no attribute `9`",
    "m.get_submodule('scale')": "not an nn.Module",
    "m.get_parameter('body.0.nothing')": "is not a parameter",
    "m.get_buffer('scale')": "is not a buffer",
    "m.body[7]": "out of range",
    "m.heads[-3]": "out of range",
    "m.by_name['z']": "no key of this ModuleDict",
    "m.by_name.pop('z')": "no key of this ModuleDict",
    "del_(m.by_name, 'z')": "no key of this ModuleDict",
    "T.nn.ParameterList([])[0]": "out of range",
    "T.nn.Sequential(1)": "is not a Module subclass",
    "T.nn.Module()(1)": 'missing the required "forward"',
    "m.train('yes')": "expected to be boolean",
    "m.to(T.int64)": "floating point",
    "m.to(places='cpu')": "device=, dtype=",
    "m.get_extra_state()": "extra state",
    "m.load_state_dict(3)": "dict-like",
    "m.register_forward_pre_hook(lambda *a: 3, with_kwargs=True) and m(T.ones(1, 4))": "None or \\(args, kwargs\\)",
    "setattr(m, 'scale', m.scale * 2)": "as parameter 'scale'",
}


@pytest.mark.parametrize("code", MISUSES)
def test_misuse(code):
    def run(package):
        scope = {"T": package, "m": network(package), "del_": lambda box, key: box.__delitem__(key)}
        eval(code, scope)

    kinds = (TypeError, KeyError, AttributeError, IndexError, ValueError, RuntimeError, NotImplementedError)
    with pytest.raises(kinds) as expected:
        run(torch)
    wanted = next(kind for kind in kinds if isinstance(expected.value, kind))
    with pytest.raises(wanted, match=MISUSES[code]) as caught:
        run(flow)
    assert all(part in str(caught.value) for part in ("(at ", "\n  seen: ", "\n  rule: ", "\n  fix:  "))


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [  # torch takes the first, and raises another type for the others
        (lambda m: m.heads.insert(0, 3), TypeError, "is not a Module subclass"),
        (lambda m: nn.ModuleDict()["z"], KeyError, "'z' is no key of this ModuleDict"),
        (lambda m: nn.Parameter([1.0]), TypeError, "must be a Tensor"),
        (lambda m: m.body["a"], TypeError, "positions are integers"),
    ],
)
def test_misuse_that_torch_tells_otherwise(act, error, text):
    with pytest.raises(error, match=text) as caught:
        act(network(flow))
    assert "\n  fix:  " in str(caught.value)


def test_a_module_that_refuses_stays_as_it_is():
    net = network(flow)
    before = list(net.named_parameters()), list(net.named_buffers()), list(net.named_modules())
    for code in MISUSES:
        if "hook" not in code and "T.nn.Param" not in code:
            with pytest.raises((TypeError, LookupError, AttributeError, ValueError, RuntimeError)):
                eval(code, {"T": flow, "m": net, "del_": lambda box, key: box.__delitem__(key)})
    after = list(net.named_parameters()), list(net.named_buffers()), list(net.named_modules())
    assert [[(n, id(v)) for n, v in part] for part in before] == [[(n, id(v)) for n, v in part] for part in after]


def test_assignment_before_init():
    class Early(nn.Module):
        def __init__(self):
            self.w = nn.Parameter(flow.ones(1))

    with pytest.raises(AttributeError, match=r"before Module.__init__"):
        Early()


def test_get_by_dotted_name():
    net = network(flow)
    assert net.get_submodule("body.0") is net.body[0] and net.get_submodule("") is net
    assert net.get_parameter("body.0.weight") is net.body[0].weight
    assert net.get_buffer("seen") is net.seen


def test_load_state_dict_is_strict():
    net = network(flow)
    state = net.state_dict()
    good = dict(state)
    good.pop("scale")
    good["more"] = flow.ones(1)
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict(good)
    reference = network(torch)
    theirs = {k: torch.tensor(v.numpy()) for k, v in good.items()}
    with pytest.raises(RuntimeError) as expected:
        reference.load_state_dict(theirs)
    for name in ("scale", "more"):  # torch names both, and so do we
        assert f'"{name}"' in str(expected.value) and f'"{name}"' in str(caught.value)
    assert all(part in str(caught.value) for part in ("seen:", "rule:", "fix:  strict=False"))
    result = net.load_state_dict(good, strict=False)
    assert result.missing_keys == ["scale"] and result.unexpected_keys == ["more"]
    assert repr(net.load_state_dict(state)) == "<All keys matched successfully>"
    state["scale"] = flow.ones(3)
    with pytest.raises(RuntimeError, match="size mismatch for scale"):
        net.load_state_dict(state)
    with pytest.raises(RuntimeError, match='"scale" is a list'):
        net.load_state_dict(state | {"scale": [1.0]})
    with pytest.raises(TypeError, match="dict-like"):
        net.load_state_dict([1])


def test_a_state_that_does_not_fit_loads_nothing():
    net = network(flow)
    before = {name: value.numpy().copy() for name, value in net.state_dict().items()}
    other = {name: value + 1 for name, value in net.state_dict().items()}
    for wrong in ({"scale": flow.ones(3)}, {"scale": 1.0}, {"more": flow.ones(1)}):
        for assign in (False, True):
            with pytest.raises(RuntimeError):
                net.load_state_dict(other | wrong, assign=assign)
    for name, value in net.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name], err_msg=name)


def test_a_hook_that_takes_keys_off_makes_a_state_fit():
    net, state = network(flow), network(flow).state_dict()
    scale = state.pop("scale")
    net.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
    net.load_state_dict(state)
    np.testing.assert_array_equal(net.body[0].weight.numpy(force=True), state["body.0.weight"].numpy())
    assert scale.shape == net.scale.shape


@pytest.mark.parametrize("ranks", [[0, 1, 2, 3], [[0, 1], [2, 3]]], ids=str)
def test_local_state_does_not_load_into_a_global_module_nor_the_other_way(ranks):
    placement = flow.placement("cpu", ranks)
    everywhere = [flow.sbp.broadcast] * len(placement.hierarchy)
    local, spread = nn.Linear(2, 3), nn.Linear(2, 3).to_global(placement, everywhere)
    for module, state, given in ((spread, local.state_dict(), "local"), (local, spread.state_dict(), "global")):
        before = module.weight.numpy(force=True).copy()
        with pytest.raises(StateDictError) as caught:
            module.load_state_dict(state)
        text = str(caught.value)
        assert text.startswith("Linear.load_state_dict(...) (at ") and f"seen: weight is {given} in the state" in text
        np.testing.assert_array_equal(module.weight.numpy(force=True), before)
        # the line that the error names is the cure
        scope = {"sbpjax": flow, "state": state, "load_state_dict": module.load_state_dict}
        eval(text.partition("fix:  ")[2].partition(";")[0], scope)
        np.testing.assert_array_equal(module.weight.numpy(force=True), state["weight"].numpy())
    assert spread.weight.sbp == tuple(everywhere)


def test_load_state_dict_copies_or_assigns():
    net = network(flow)
    mine = net.scale
    net.load_state_dict(net.state_dict() | {"scale": flow.full((2,), 7.0)})
    assert net.scale is mine and net.scale.detach().numpy().tolist() == [7.0, 7.0]
    given = nn.Parameter(flow.full((2,), 9.0))
    net.load_state_dict(net.state_dict() | {"scale": given}, assign=True)
    assert net.scale is given


def test_state_dict_has_the_parameters_themselves_unless_asked_for_detached_ones():
    net = network(flow)
    state = net.state_dict(keep_vars=False)
    with flow.no_grad():
        net.scale.fill_(3.0)
    assert state["scale"].numpy().tolist() == [3.0, 3.0] and not state["scale"].requires_grad
    assert net.state_dict()["scale"] is net.state_dict(keep_vars=True)["scale"] is net.scale


def test_extra_state_and_hooks_of_the_state():
    class Counted(nn.Module):
        def __init__(self):
            super().__init__()
            self.count = 0
            self.w = nn.Parameter(flow.ones(1))

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    a, b = Counted(), Counted()
    a.count = 5
    seen = []
    a.register_state_dict_post_hook(lambda m, state, prefix, meta: seen.append(sorted(state)))
    b.register_load_state_dict_pre_hook(lambda m, *rest: seen.append("before"))
    b.register_load_state_dict_post_hook(lambda m, keys: seen.append(keys.missing_keys))
    b.load_state_dict(a.state_dict())
    assert b.count == 5 and seen == [["_extra_state", "w"], "before", []]


def test_forward_hooks():
    net, trace = nn.Linear(2, 2), []
    x = flow.ones(1, 2)
    pre = net.register_forward_pre_hook(lambda m, args: trace.append("pre"))
    net.register_forward_pre_hook(lambda m, args: (args[0] * 2,), prepend=True)
    net.register_forward_hook(lambda m, args, out: trace.append("post"))
    change = net.register_forward_hook(lambda m, args, out: out * 0)
    assert (net(x).detach().numpy() == 0).all() and trace == ["pre", "post"]
    pre.remove()
    change.remove()
    np.testing.assert_allclose(net(x).detach().numpy(), net.forward(x * 2).detach().numpy())
    net.register_forward_pre_hook(lambda m, args, kwargs: (args, kwargs), with_kwargs=True)
    net.register_forward_hook(lambda m, args, kwargs, out: trace.append(kwargs), with_kwargs=True)
    net(input=x) if False else net(x)
    assert trace[-1] == {}


def test_hooks_of_all_modules_and_failures():
    net, trace = nn.Sequential(nn.Identity(), nn.Identity()), []
    with nn.register_module_forward_hook(lambda m, args, out: trace.append(type(m).__name__)):
        net(flow.ones(1))
    net(flow.ones(1))
    assert trace == ["Identity", "Identity", "Sequential"]

    class Broken(nn.Module):
        def forward(self, x):
            raise KeyError("no")

    broken = Broken()
    broken.register_forward_hook(lambda m, args, out: trace.append("always"), always_call=True)
    with pytest.raises(KeyError, match="no"):
        broken(1)
    assert trace[-1] == "always"


def backward_hook_trace(package):
    layer, trace = package.nn.Linear(2, 2, bias=False), []
    with package.no_grad():
        layer.weight.fill_(1.0)

    def pre(m, grad_output):
        trace.append(("pre", [g.numpy().tolist() for g in grad_output]))
        return tuple(g * 2 for g in grad_output)

    def post(m, grad_input, grad_output):
        trace.append(("post", [g.numpy().tolist() for g in (*grad_input, *grad_output)]))
        return tuple(g * 10 for g in grad_input)

    layer.register_full_backward_pre_hook(pre)
    layer.register_full_backward_hook(post)
    x = package.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    return trace, x.grad.numpy().tolist(), layer.weight.grad.numpy().tolist()


def test_backward_hooks_equal_torchs():
    assert backward_hook_trace(flow) == backward_hook_trace(torch)


def test_casts_keep_parameters_and_leave_integers():
    net = nn.BatchNorm1d(3)
    weight = net.weight
    net.double()
    assert net.weight is weight and net.weight.dtype == flow.float64 and net.weight.requires_grad
    assert net.running_mean.dtype == flow.float64 and net.num_batches_tracked.dtype == flow.int64
    assert net.bfloat16().weight.dtype == flow.bfloat16
    assert net.to(flow.float32).weight.dtype == flow.float32
    assert net.to("cpu") is net
    with pytest.raises(TypeError, match="floating point"):
        net.to(flow.int64)


def test_to_global_lays_out_in_place_and_computes_the_same():
    ours, theirs = pair()
    placement = flow.placement(*CPU4)
    x = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
    parameter = ours.body[0].weight
    assert ours.to_global(placement, flow.sbp.broadcast) is ours
    ours.body[0].to_global(sbp=flow.sbp.split(0))
    assert ours.body[0].weight is parameter and parameter.requires_grad and parameter.is_leaf
    assert parameter.sbp == (flow.sbp.split(0),) and ours.scale.sbp == (flow.sbp.broadcast,)
    assert ours.seen.is_global
    y = ours(flow.tensor(x).to_global(placement, flow.sbp.split(0)))
    reference = theirs(torch.tensor(x))
    np.testing.assert_allclose(y.detach().numpy(), reference.detach().numpy(), rtol=1e-5, atol=1e-6)
    y.sum().backward()
    reference.sum().backward()
    for (name, p), q in zip(ours.named_parameters(), theirs.parameters()):
        assert p.grad.sbp == p.sbp
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-5, atol=1e-5, err_msg=name)
    ours.to_local()
    assert not parameter.is_global and not parameter.grad.is_global


def test_a_state_loads_across_layouts():
    source, target = network(flow), network(flow)
    placement = flow.placement(*CPU4)
    target.to_global(placement, flow.sbp.broadcast)
    target.body[0].to_global(placement, flow.sbp.split(0))
    target.load_state_dict(to_global(source.state_dict(), placement, flow.sbp.broadcast))
    assert target.body[0].weight.sbp == (flow.sbp.split(0),)
    moved = network(flow).to_global(flow.placement("cpu", [3, 1]), flow.sbp.split(0))
    moved.load_state_dict(target.state_dict())
    assert moved.body[0].weight.placement == flow.placement("cpu", [3, 1])
    back = network(flow)
    back.load_state_dict(to_local(moved.state_dict()))
    for name, value in source.state_dict().items():
        np.testing.assert_array_equal(back.state_dict()[name].numpy(), value.numpy(), err_msg=name)


def test_zero_grad():
    layer = nn.Linear(2, 2)
    layer(flow.ones(1, 2)).sum().backward()
    layer.zero_grad()
    assert (layer.weight.grad.numpy() == 0).all()
    layer.zero_grad(set_to_none=True)
    assert layer.weight.grad is None


def test_parameter():
    p = nn.Parameter(flow.ones(2))
    assert isinstance(p, flow.Tensor) and p.requires_grad and p.is_leaf
    assert not nn.Parameter(flow.ones(2), requires_grad=False).requires_grad
    assert repr(p).startswith("Parameter containing:\n")
    value = flow.ones(2)
    shared = nn.Parameter(value)
    value.fill_(4.0)
    assert shared.detach().numpy().tolist() == [4.0, 4.0]
    with pytest.raises(TypeError, match="must be a Tensor"):
        nn.Parameter([1.0])


def test_containers_behave_as_torchs():
    def edits(package):
        linear = package.nn.Linear
        seq = package.nn.Sequential(OrderedDict(a=linear(1, 1), b=linear(1, 2)))
        seq.append(linear(2, 3)) if False else None
        more = package.nn.Sequential(linear(1, 1), linear(1, 2))
        more.append(linear(2, 3))
        more.insert(1, linear(1, 1))
        more.extend([package.nn.ReLU()])
        popped = more.pop(-1)
        del more[0]
        items = package.nn.ModuleList([linear(1, 1)])
        items += [linear(1, 2)]
        items.insert(0, linear(5, 5))
        table = package.nn.ModuleDict({"x": linear(1, 1)})
        table.update({"y": linear(2, 2)})
        kept = [repr(m) for m in (seq, more, popped, seq[0:1], more[-1], items, items[1:], table)]
        return kept, list(table), len(more), "x" in table, [repr(v) for v in table.values()]

    assert edits(flow) == edits(torch)


def test_parameter_containers():
    items = nn.ParameterList([flow.ones(1), nn.Parameter(flow.zeros(2))])
    items.append(flow.ones(3))
    assert [n for n, _ in items.named_parameters()] == ["0", "1", "2"] and len(items) == 3
    assert isinstance(items[0], nn.Parameter) and [p.numel() for p in items[1:]] == [2, 3]
    table = nn.ParameterDict({"a": flow.ones(1)})
    table["b"] = flow.ones(2)
    assert list(table) == ["a", "b"] and "b" in table and isinstance(table["a"], nn.Parameter)
