"""Adapters: only they are trained, alike on every mesh; folders under PEFT's names, merged models."""

import json

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import checkpoint, models
from sbpjax.errors import CheckpointError, OpValueError
from sbpjax.models import lora
from sbpjax.models.layers import LoraLinear
from tests.models.cases import TRAINED, Step, facts
from tests.models.record import DATA

TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}
ALL = ("*.attention.*", "*.mlp.*")
MESHES = [{"tensor": 4}, {"data": 2, "fsdp": 2, "tensor": 2}, {"pipeline": 2, "tensor": 2}]


def adapted(case, targets="*.attention.[qv]", **options):
    """Return a recorded model with an adapter that computes something."""
    model = lora.attach(models.from_pretrained(DATA / case), targets, **options)
    random = np.random.default_rng(0)
    for _, layer in lora.layers(model):
        layer.set(*(random.normal(size=tuple(p.shape)) / 4 for p in (layer.lora_a, layer.lora_b)))
    return model.eval()


def logits(model, case, place=flow.tensor):
    with flow.no_grad():
        return model.eval()(place(facts(case)["tokens"])).numpy()


def losses(spec, is_before, case="llama", steps=3):
    """Return losses of training steps of an adapter that is attached before or behind `parallelize`."""
    flow.manual_seed(0)
    model = TRAINED[case]()
    if is_before:
        models.parallelize(lora.attach(model, ALL, rank=2), spec)
    else:
        flow.manual_seed(1)
        state = flow.get_rng_state()
        models.parallelize(model, spec)
        flow.set_rng_state(state)
        lora.attach(model, ALL, rank=2)
    before = {name: p.detach().numpy() for name, p in model.named_parameters()}
    step = Step(model, 4 if spec.pipeline > 1 else 1)
    random = np.random.default_rng(0)
    found = []
    for _ in range(steps):
        tokens, targets = random.integers(0, 61, (2, 8, 12))
        found.append(step(spec.place(tokens), spec.place(targets, -1)).mean().item())
    changed = {n for n, p in model.named_parameters() if not np.array_equal(p.detach().numpy(), before[n])}
    return found, model, changed, step


@pytest.fixture(scope="module")
def alone():
    """Return the losses of one device, computed once."""
    return losses(models.Parallel(device="cpu"), True)


def test_only_adapters_are_trained(alone):
    _, model, changed, step = alone
    own = {name for name, p in model.named_parameters() if p.requires_grad}
    assert changed == own == {n for n, _ in model.named_parameters() if n.endswith(("lora_a", "lora_b"))}
    assert len(lora.parameters(model)) == len(own) == 2 * 7 * 2
    (optimizer,) = [entry.optimizer for entry in step._g.optimizers]
    moments = sum(x.numel() for x in optimizer.state_tensors() if x.ndim)
    assert moments == 2 * sum(p.numel() for p in lora.parameters(model))


@pytest.mark.parametrize("mesh", MESHES, ids=lambda m: "-".join(m))
@pytest.mark.parametrize("is_before", [True, False])
def test_every_mesh_trains_alike(mesh, is_before, alone):
    spec = models.Parallel(**mesh, device="cpu")
    found, model, changed, _ = losses(spec, is_before)
    if is_before:  # else the matrices start from other numbers
        np.testing.assert_allclose(found, alone[0], rtol=1e-5)
    assert changed == alone[2]
    split, whole = flow.sbp.split, flow.sbp.broadcast
    for name, layer in lora.layers(model):
        assert layer.lora_a.placement == layer.lora_b.placement == layer.weight.placement, name
        for w, a, b in zip(layer.weight.sbp, layer.lora_a.sbp, layer.lora_b.sbp):
            assert (a, b) == {split(0): (whole, split(0)), split(1): (split(1), whole)}.get(w, (whole, whole)), name


@pytest.mark.parametrize("case", ["llama", "gpt2", "bert"])
def test_folders_and_merged_models(case, tmp_path):
    model = adapted(case, ("*.attention.[qv]", "*.mlp.up"), rank=2, alpha=3.0)
    tokens = flow.tensor(facts(case)["tokens"])
    first = (lambda m: m.encode(tokens)) if case == "bert" else (lambda m: m(tokens))
    with flow.no_grad():
        want, plain = first(model).numpy(), first(models.from_pretrained(DATA / case).eval()).numpy()
        assert np.abs(want - plain).max() > 0.1
        lora.save(model, tmp_path / "tuned", base="here")
        again = lora.load(models.from_pretrained(DATA / case).eval(), tmp_path / "tuned")
        np.testing.assert_allclose(first(again).numpy(), want, **TOLERANCE)
        lora.save(again, tmp_path / "tuned")  # replaces it
        with pytest.raises(CheckpointError, match=r"lora.merge\(model\) first"):
            models.save_pretrained(model, tmp_path / "whole")
        models.save_pretrained(lora.merge(model), tmp_path / "whole")
        np.testing.assert_allclose(first(models.from_pretrained(tmp_path / "whole").eval()).numpy(), want, **TOLERANCE)
        assert all(p.requires_grad for p in model.parameters()) and not list(lora.layers(model))
    assert {f.name for f in tmp_path.iterdir()} == {"tuned", "whole"}


def test_names_and_fields_are_those_of_peft(tmp_path):
    lora.save(adapted("llama", "blocks.*.attention.[qv]", rank=2, alpha=3.0), tmp_path / "llama", base="meta/llama")
    values = json.loads((tmp_path / "llama" / "adapter_config.json").read_text())
    want = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": 2, "lora_alpha": 3.0, "bias": "none"}
    want |= {"target_modules": ["q_proj", "v_proj"], "base_model_name_or_path": "meta/llama", "rank_pattern": {}}
    assert values.items() >= (want | {"fan_in_fan_out": False, "use_rslora": False}).items()
    state = checkpoint.load_safetensors(tmp_path / "llama" / "adapter_model.safetensors")
    start = "base_model.model.model.layers.0.self_attn"
    assert len(state) == 8 and state[f"{start}.q_proj.lora_A.weight"].shape == (2, 16)
    assert state[f"{start}.v_proj.lora_B.weight"].shape == (8, 2)

    lora.save(adapted("gpt2", ("*.attention.[qv]", "blocks.1.mlp.up"), rank=2, alpha=3.0), tmp_path / "gpt2")
    values = json.loads((tmp_path / "gpt2" / "adapter_config.json").read_text())
    state = checkpoint.load_safetensors(tmp_path / "gpt2" / "adapter_model.safetensors")
    start = "base_model.model.transformer.h.0.attn.c_attn"
    assert state[f"{start}.lora_A.weight"].shape == (4, 16)  # of q and of v
    b = state[f"{start}.lora_B.weight"].numpy()
    assert b.shape == (48, 4) and not b[16:32].any() and not b[:16, 2:].any() and not b[32:, :2].any()
    assert values["fan_in_fan_out"] and values["r"] == 4 and values["rank_pattern"] == {"transformer.h.1.mlp.c_fc": 2}
    assert values["target_modules"] == ["c_attn", "transformer.h.1.mlp.c_fc"]


@pytest.mark.parametrize("case, layer, is_turned", [("llama", "self_attn.k_proj", 0), ("gpt2", "attn.c_attn", 1)])
def test_a_folder_by_another_hand(case, layer, is_turned, tmp_path):
    """Written as PEFT's documentation has it; the sum of the matrices in Hugging Face's file is the reference."""
    state = {name: x.numpy() for name, x in checkpoint.load_safetensors(DATA / case).items()}
    name = next(n for n in state if n.endswith(f".1.{layer}.weight")).removesuffix(".weight")
    weight = state[f"{name}.weight"].T if is_turned else state[f"{name}.weight"]
    random = np.random.default_rng(3)
    a, b = (random.normal(size=s).astype(np.float32) for s in ((3, weight.shape[1]), (weight.shape[0], 3)))
    (tmp_path / "theirs").mkdir()
    keys = [f"base_model.model.{name}.lora_{which}.weight" for which in "AB"]
    file = tmp_path / "theirs" / "adapter_model.safetensors"
    checkpoint.save_safetensors({key: flow.tensor(x) for key, x in zip(keys, (a, b))}, file)
    values = {"peft_type": "LORA", "r": 8, "lora_alpha": 9, "use_rslora": True, "bias": "none"}
    values |= {"rank_pattern": {layer: 3}, "alpha_pattern": {layer: 6}, "megatron_config": None}
    (tmp_path / "theirs" / "adapter_config.json").write_text(json.dumps(values))

    found = lora.load(models.from_pretrained(DATA / case), tmp_path / "theirs")
    spec = models.Parallel(tensor=2, device="cpu")
    there = lora.load(models.from_pretrained(DATA / case, spec), tmp_path / "theirs")
    merged = weight + 6 / 3**0.5 * b @ a
    models.save_pretrained(models.from_pretrained(DATA / case), tmp_path / "merged")
    state[f"{name}.weight"] = np.ascontiguousarray(merged.T if is_turned else merged)
    checkpoint.save_safetensors(
        {n: flow.tensor(x) for n, x in state.items()}, tmp_path / "merged" / "model.safetensors", {"format": "pt"}
    )
    want = logits(models.from_pretrained(tmp_path / "merged"), case)
    np.testing.assert_allclose(logits(found, case), want, **TOLERANCE)
    np.testing.assert_allclose(logits(there, case, spec.place), want, **TOLERANCE)


def test_a_head_that_is_trained_beside_it(tmp_path):
    options = {"architecture": "BertForSequenceClassification", "fresh": ("classifier.*",), "num_labels": 5}
    model = lora.attach(models.from_pretrained(DATA / "bert", **options), rank=2, also=("classifier.*",)).eval()
    assert [n for n, p in model.named_parameters() if p.requires_grad and "lora" not in n] == [
        "classifier.weight",
        "classifier.bias",
    ]
    tokens = flow.tensor(facts("bert")["tokens"])
    lora.save(model, tmp_path / "tuned")
    values = json.loads((tmp_path / "tuned" / "adapter_config.json").read_text())
    assert values["modules_to_save"] == ["classifier"] and values["task_type"] == "SEQ_CLS"
    again = lora.load(models.from_pretrained(DATA / "bert", **options).eval(), tmp_path / "tuned")
    np.testing.assert_allclose(again(tokens).detach().numpy(), model(tokens).detach().numpy(), **TOLERANCE)
    assert again.classifier.weight.requires_grad


@pytest.mark.parametrize(
    "change, seen",
    [
        ({"use_dora": True}, "use_dora=True"),
        ({"peft_type": "IA3"}, "peft_type='IA3'"),
        ({"bias": "all"}, "bias='all'"),
        ("gone", "FileNotFoundError"),
        ("other", "model.layers.0.self_attn.q_proj.lora_B.weight"),
        ("shape", r"A \[2, 15\], B \[16, 2\]"),
        ("base", r"model.norm.weight of shape \[3\]"),
        ("integers", "of int32"),
        ({"lora_alpha": "x"}, "lora_alpha='x'"),
        ({"lora_alpha": float("nan")}, "lora_alpha=nan"),
        ({"lora_dropout": 5}, "lora_dropout=5"),
        ({"alpha_pattern": [1]}, "alpha_pattern="),
        ({"r": 3}, "its rank is 3"),
        ([1], "holds a list"),
    ],
    ids=str,
)
def test_an_adapter_that_does_not_fit_is_one_error(change, seen, tmp_path):
    lora.save(adapted("llama", rank=2), tmp_path / "tuned")
    path, file = tmp_path / "tuned" / "adapter_config.json", tmp_path / "tuned" / "adapter_model.safetensors"
    if isinstance(change, dict):
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
    elif isinstance(change, list):
        path.write_text(json.dumps(change))
    elif change == "gone":
        path.unlink()
    else:
        state = checkpoint.load_safetensors(file)
        key = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"
        a = state.pop(key)
        if change == "base":  # of the model itself
            state |= {key: a, "base_model.model.model.norm.weight": flow.ones(3)}
        elif change == "integers":
            state |= {key: a.to(flow.int32)}
        else:
            state |= {key.replace("layers.0", "layers.7"): a} if change == "other" else {key: a[:, :-1].clone()}
        checkpoint.save_safetensors(state, file)
    model = models.from_pretrained(DATA / "llama")
    with pytest.raises(CheckpointError, match=seen):
        lora.load(model, tmp_path / "tuned", verify=False)
    assert not list(lora.layers(model)) and all(p.requires_grad for p in model.parameters())


@pytest.mark.parametrize("where", ["config", "tensor", "tensor and name of the digest"])
def test_a_damaged_file_is_seen_by_its_digest(where, tmp_path):
    lora.save(adapted("llama", rank=2), tmp_path)
    file = tmp_path / ("adapter_config.json" if where == "config" else "adapter_model.safetensors")
    if where == "config":
        file.write_text(json.dumps(json.loads(file.read_text()) | {"lora_alpha": 17.0}))
    else:
        data = bytearray(file.read_bytes())
        data[-3] ^= 1
        data = data.replace(b"sbpjax_sha256", b"sbpjax_shc2%6") if "name" in where else data
        file.write_bytes(data)
    with pytest.raises(CheckpointError, match=r"(?s)another SHA-256.*verify=False"):
        lora.load(models.from_pretrained(DATA / "llama"), tmp_path)
    assert list(lora.layers(lora.load(models.from_pretrained(DATA / "llama"), tmp_path, verify=False)))


@pytest.mark.parametrize("does", ["load", "attach"])
def test_an_interrupt_leaves_the_model_as_it_was(does, tmp_path, monkeypatch):
    lora.save(adapted("llama", rank=2, also=("norm.weight",)), tmp_path)
    model = models.from_pretrained(DATA / "llama")
    modules, before = dict(model.named_modules()), {n: p.detach().numpy() for n, p in model.named_parameters()}
    model.get_parameter("norm.weight").requires_grad_(False)
    trained, calls = [p.requires_grad for p in model.parameters()], []

    def interrupted(*given):
        calls.append(given)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return exchange(*given)

    exchange = lora._exchange
    monkeypatch.setattr(lora, "_exchange", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lora.load(model, tmp_path) if does == "load" else lora.attach(model)
    assert dict(model.named_modules()) == modules and [p.requires_grad for p in model.parameters()] == trained
    for name, parameter in model.named_parameters():
        np.testing.assert_array_equal(parameter.detach().numpy(), before[name])


def test_a_model_with_adapters_takes_no_second_one(tmp_path):
    lora.save(lora.attach(models.from_pretrained(DATA / "gpt2"), "*.attention.[qv]", rank=2), tmp_path / "x")
    model = lora.attach(models.from_pretrained(DATA / "gpt2"), "*.mlp.up", rank=2)
    before = {name: p.numpy() for name, p in model.named_parameters()}
    with pytest.raises(CheckpointError, match="mlp.up has an adapter"):
        lora.load(model, tmp_path / "x")
    assert all((p.numpy() == before[name]).all() for name, p in model.named_parameters())
    lora.load(lora.merge(model), tmp_path / "x")


def test_wrong_calls_are_one_error(tmp_path):
    model = models.from_pretrained(DATA / "gpt2")
    with pytest.raises(OpValueError, match=r"no layer 'blocks.0.attention.k_proj'[\s\S]*blocks.0.attention"):
        lora.attach(model, ["*.attention.q", "blocks.0.attention.k_proj"])
    with pytest.raises(OpValueError, match="rank=0"):
        lora.attach(model, rank=0)
    with pytest.raises(CheckpointError, match="no adapted layer"):
        lora.save(model, tmp_path / "x")
    with pytest.raises(OpValueError, match="no adapted layer"):
        lora.parameters(model)
    assert not any(isinstance(m, LoraLinear) for m in model.modules()) and not list(tmp_path.iterdir())
