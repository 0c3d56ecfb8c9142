"""Folders of `transformers`: the same logits, losses and gradients; what we write is what it wrote; one error each."""

import importlib.util
import json
import shutil

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import checkpoint, models
from sbpjax.errors import CheckpointError, ConfigError
from sbpjax.models.parallelize import Layouts
from sbpjax.models.pretrained import family_weights
from sbpjax.nn.layers.attention import attention_by
from tests.models.cases import CASES, arguments, facts
from tests.models.record import DATA, SEQ2SEQ

TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}  # float32, other orders of sums
MESH = models.Parallel(data=2, fsdp=2, tensor=2, device="cpu")


def evaluate(case, model, given, place=flow.tensor):
    """Return logits, and behind them the loss."""
    (tokens, *targets), others = arguments(case, given, place)
    before = [model.shift_right(*targets)] if case in SEQ2SEQ else []
    out = model.eval()(tokens, *before, **others)
    return [*(out if isinstance(out, tuple) else [out]), model.loss(tokens, *targets, **others)]


@pytest.mark.parametrize("case", CASES)
def test_logits_loss_and_gradients_are_those_of_transformers(case):
    given = facts(case)
    model = models.from_pretrained(DATA / case)
    *logits, loss = evaluate(case, model, given)
    np.testing.assert_allclose(logits[0].detach().numpy(), given["logits"], **TOLERANCE)
    if case == "bert":
        np.testing.assert_allclose(logits[1].detach().numpy(), given["follows"], **TOLERANCE)
    np.testing.assert_allclose(loss.item(), given["loss"], **TOLERANCE)
    loss.backward()
    recorded = checkpoint.open_safetensors(DATA / case / "gradients.safetensors")
    weights = family_weights(model.config.model_type)
    for name, parameter in model.named_parameters():
        want = weights.part(name).read_parameter(recorded, tuple(parameter.shape))
        assert parameter.grad.abs().sum() > 0, name
        np.testing.assert_allclose(parameter.grad.numpy(), want, **TOLERANCE, err_msg=name)


def test_a_loaded_model_is_in_evaluation_mode_as_from_transformers():
    assert not any(module.training for module in models.from_pretrained(DATA / "bert", MESH).modules())


@pytest.mark.parametrize("case", CASES)
def test_every_tensor_is_read_into_its_shards(case):
    whole, model = models.from_pretrained(DATA / case), models.from_pretrained(DATA / case, MESH)
    layouts = Layouts(whole, MESH).of
    split = 0
    for (name, ours), theirs in zip(model.named_parameters(), whole.parameters(), strict=True):
        place, layout = layouts[name]
        assert ours.placement == place and list(ours.sbp) == layout, name
        np.testing.assert_array_equal(ours.detach().numpy(), theirs.detach().numpy(), err_msg=name)
        split += ours.sbp[1] != flow.sbp.broadcast and ours.sbp[2] != flow.sbp.broadcast
    assert split >= 12  # the matrices of two blocks are split both ways


@pytest.mark.parametrize("mesh", [None, MESH], ids=["local", "mesh"])
@pytest.mark.parametrize("case", CASES)
def test_what_we_write_is_what_transformers_wrote(case, mesh, tmp_path):
    model = models.from_pretrained(DATA / case, mesh)
    models.save_pretrained(model, tmp_path / "ours")
    ours, theirs = checkpoint.open_safetensors(tmp_path / "ours"), checkpoint.open_safetensors(DATA / case)
    assert set(ours) == set(theirs)
    for name in ours:
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
    written, read = (json.loads((folder / "config.json").read_text()) for folder in (tmp_path / "ours", DATA / case))
    rotary = read.pop("rope_parameters", None)
    if rotary is not None:
        assert written["rope_theta"] == rotary.pop("rope_theta")
        assert written.get("rope_scaling", {"rope_type": "default"}) == rotary
    assert {name: written.get(name) for name in read} == read
    assert models.from_pretrained(tmp_path / "ours").config.to_dict() == model.config.to_dict() | written


def test_a_folder_of_several_files_and_what_is_carried_along(tmp_path):
    model = models.from_pretrained(DATA / "llama")
    source = tmp_path / "source"
    source.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json", "merges.txt", "notes.txt"):
        (source / name).write_text(name)
    models.save_pretrained(model, tmp_path / "ours", files_from=source, shard_bytes=4000)
    files = sorted(file.name for file in (tmp_path / "ours").iterdir())
    shards = [name for name in files if name.endswith(".safetensors")]
    count = len(shards)
    assert count > 2 and shards == [f"model-{i + 1:05}-of-{count:05}.safetensors" for i in range(count)]
    carried = ["merges.txt", "tokenizer.json", "tokenizer_config.json"]
    assert sorted({*files} - {*shards}) == sorted(["config.json", "model.safetensors.index.json", *carried])
    assert all((tmp_path / "ours" / shard).stat().st_size < 4000 + 4000 for shard in shards)
    again = models.from_pretrained(tmp_path / "ours")
    for ours, theirs in zip(again.parameters(), model.parameters(), strict=True):
        assert flow.equal(ours, theirs)
    models.save_pretrained(model, tmp_path / "ours")  # replaces it whole
    assert sorted(f.name for f in (tmp_path / "ours").iterdir()) == ["config.json", "model.safetensors"]
    assert {f.name for f in tmp_path.iterdir()} == {"ours", "source"}


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(DATA / "llama", tmp_path / "llama")
    return tmp_path / "llama"


def change(folder, **fields):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({k: v for k, v in (config | fields).items() if v != "gone"}))


@pytest.mark.parametrize(
    "fields, error, seen",
    [
        ({"hiden_size": 16}, ConfigError, r"hiden_size=16[\s\S]*write 'hidden_size'"),
        ({"soft_cap": 30.0}, ConfigError, r"soft_cap=30.0[\s\S]*may change the results of the model"),
        ({"hidden_size": "gone"}, ConfigError, r"no hidden_size[\s\S]*cannot be without"),
        ({"model_type": "lama"}, ConfigError, r"model_type='lama'[\s\S]*\"model_type\": \"llama\""),
        ({"architectures": ["LlamaForTokens"]}, ConfigError, r"'LlamaForTokens'[\s\S]*LlamaForCausalLM"),
        ({"hidden_act": "tanhshrink"}, ConfigError, r"hidden_act='tanhshrink'[\s\S]*one of silu"),
        ({"rope_parameters": {"rope_type": "longrope"}}, ConfigError, r"rope_type='longrope'[\s\S]*default, linear"),
        ({"rope_parameters": {"rope_type": "llama3"}}, ConfigError, r"llama3 needs factor, low_freq_factor"),
        ({"num_key_value_heads": 3}, ConfigError, r"4 heads, 3 of keys[\s\S]*num_key_value_heads=2"),
        ({"vocab_size": 32}, CheckpointError, r"embed_tokens.weight of shape \[31, 16\], for \[32, 16\]"),
        ({"num_hidden_layers": 3}, CheckpointError, r"no model.layers.2.input_layernorm.weight; [\s\S]*and \d+ more"),
        ({"num_hidden_layers": 1}, CheckpointError, r"model.layers.1.\S+, which the model has not"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_config_that_does_not_fit_is_one_error(folder, fields, error, seen):
    change(folder, **fields)
    with pytest.raises(error, match=seen) as info:
        models.from_pretrained(folder)
    assert all(part in str(info.value) for part in ("\n  seen: ", "\n  rule: ", "\n  fix:  ")) and str(folder)


def test_files_that_are_missing_or_damaged_are_one_error(folder, tmp_path):
    with pytest.raises(CheckpointError, match="config.json"):
        models.from_pretrained(tmp_path / "nothing")
    models.save_pretrained(models.from_pretrained(folder), tmp_path / "many", shard_bytes=4000)
    lost = sorted((tmp_path / "many").glob("*.safetensors"))[1]
    lost.rename(tmp_path / "elsewhere")
    with pytest.raises(CheckpointError, match=rf"{lost.name}[\s\S]*FileNotFoundError"):
        models.from_pretrained(tmp_path / "many")
    (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-8])
    with pytest.raises(CheckpointError, match="model.safetensors"):
        models.from_pretrained(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match="JSONDecodeError"):
        models.from_pretrained(folder)


def test_a_model_that_cannot_be_written_leaves_what_was_there(folder, monkeypatch):
    model = models.from_pretrained(folder)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    monkeypatch.setattr(models.pretrained, "save_safetensors", lambda *args: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        models.save_pretrained(model, folder)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_another_head_on_a_pretrained_body():
    with pytest.raises(CheckpointError, match="no classifier.weight; no classifier.bias"):
        models.from_pretrained(DATA / "bert", architecture="BertForSequenceClassification")
    options = {"architecture": "BertForSequenceClassification", "fresh": ("classifier.*",), "num_labels": 5}
    flow.manual_seed(0)
    model = models.from_pretrained(DATA / "bert", MESH, **options)
    assert model.classifier.weight.shape == (5, 16) and model.classifier.weight.std() > 0.1  # initializer_range 0.3
    body = models.from_pretrained(DATA / "bert")
    assert flow.equal(body.pooler.weight, flow.tensor(model.pooler.weight.detach().numpy()))


def test_older_names_and_another_dtype(tmp_path):
    for case, rename in [
        ("gpt2", lambda name: name.removeprefix("transformer.")),
        ("bert", lambda name: name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("Norm.bias", "Norm.beta")),
    ]:
        shutil.copytree(DATA / case, tmp_path / case)
        state = checkpoint.load_safetensors(DATA / case)
        checkpoint.save_safetensors({rename(k): v for k, v in state.items()}, tmp_path / case / "model.safetensors")
        model, half = (models.from_pretrained(tmp_path / case, dtype=dtype) for dtype in (None, flow.bfloat16))
        for theirs, ours in zip(model.parameters(), half.parameters(), strict=True):
            assert ours.dtype == flow.bfloat16 and flow.allclose(ours.float(), theirs, rtol=1e-2)
    models.save_pretrained(half, tmp_path / "half")
    assert json.loads((tmp_path / "half" / "config.json").read_text())["dtype"] == "bfloat16"
    assert next(models.from_pretrained(tmp_path / "half").parameters()).dtype == flow.bfloat16


def test_fused_experts_are_read_too(tmp_path):
    (tmp_path / "fused").mkdir()
    shutil.copy(DATA / "mixtral" / "config.json", tmp_path / "fused")
    files = checkpoint.load_safetensors(DATA / "mixtral" / "model.safetensors")
    state = {name.replace(".block_sparse_moe.", ".mlp."): x for name, x in files.items() if ".experts." not in name}
    for i in range(2):
        old, new = (f"model.layers.{i}.{room}.experts" for room in ("block_sparse_moe", "mlp"))
        gates, ups, downs = (flow.stack([files[f"{old}.{e}.{w}.weight"] for e in range(4)]) for w in ("w1", "w3", "w2"))
        state |= {f"{new}.gate_up_proj": flow.cat([gates, ups], dim=1), f"{new}.down_proj": downs}
    checkpoint.save_safetensors(state, tmp_path / "fused" / "model.safetensors")
    fused, whole = models.from_pretrained(tmp_path / "fused"), models.from_pretrained(DATA / "mixtral", MESH)
    for ours, theirs in zip(fused.parameters(), whole.parameters(), strict=True):
        np.testing.assert_array_equal(ours.detach().numpy(), theirs.detach().numpy())
    del state["model.layers.0.mlp.experts.down_proj"]
    checkpoint.save_safetensors(state, tmp_path / "fused" / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"no model.layers.0.block_sparse_moe.experts.0.w2.weight"):
        models.from_pretrained(tmp_path / "fused")


@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed")
@pytest.mark.filterwarnings("ignore")  # other packages' own
@pytest.mark.exhaustive
@pytest.mark.parametrize("case", CASES)
def test_transformers_reads_what_we_write(case, tmp_path):
    import torch
    import transformers

    given = facts(case)
    model = models.from_pretrained(DATA / case, MESH)
    models.save_pretrained(model, tmp_path / "ours", shard_bytes=8000)
    name = json.loads((tmp_path / "ours" / "config.json").read_text())["architectures"][0]
    theirs, info = getattr(transformers, name).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(info.values()), info
    options = {"token_type_ids": torch.tensor(given["segments"])} if case == "bert" else {}
    options["attention_mask"] = torch.tensor(given["present"]).long()
    if case in SEQ2SEQ:
        options["decoder_input_ids"] = theirs._shift_right(torch.tensor(given["targets"]))
    out = theirs.eval()(torch.tensor(given["tokens"]), **options)
    logits = out.prediction_logits if case == "bert" else out.logits
    np.testing.assert_allclose(logits.detach().numpy(), given["logits"], **TOLERANCE)


@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed")
@pytest.mark.filterwarnings("ignore")  # other packages' own
@pytest.mark.exhaustive
@pytest.mark.parametrize("implementation", ["plain", "blocks"])
@pytest.mark.parametrize("seed", range(4))
def test_windows_of_random_models_are_those_of_transformers(seed, implementation, tmp_path):
    import torch
    import transformers

    rng = np.random.default_rng(seed)
    sizes = {"num_attention_heads": 4, "num_key_value_heads": int(rng.choice([1, 2, 4])), "hidden_size": 16}
    common = {**sizes, "vocab_size": 31, "intermediate_size": 20, "num_hidden_layers": 3, "initializer_range": 0.3}
    common["sliding_window"] = int(rng.integers(2, 9))
    torch.manual_seed(seed)
    if seed % 2:
        theirs = transformers.MistralForCausalLM(transformers.MistralConfig(**common))
    else:
        kinds = [str(kind) for kind in rng.choice(["full_attention", "sliding_attention"], 3)]
        kinds[1] = "sliding_attention"
        config = transformers.Qwen2Config(**common, use_sliding_window=True, layer_types=kinds)
        theirs = transformers.Qwen2ForCausalLM(config)
    theirs.eval().save_pretrained(tmp_path)
    tokens = rng.integers(1, 31, (2, 40))
    present = np.arange(40)[None] < np.array([[40], [29]])
    with torch.no_grad():
        wanted = theirs(torch.tensor(tokens), attention_mask=torch.tensor(present).long()).logits.numpy()
        generated = theirs.generate(torch.tensor(tokens[:1]), max_new_tokens=12, do_sample=False, eos_token_id=None)
    model = models.from_pretrained(tmp_path)
    with attention_by(implementation):
        found = model.eval()(flow.tensor(tokens), flow.tensor(present.astype(np.int64))).detach().numpy()
        alone = model(flow.tensor(tokens)).detach().numpy()
        assert models.generate(model, tokens[:1].tolist(), 12) == generated[:, 40:].tolist()
    np.testing.assert_allclose(found[present], wanted[present], **TOLERANCE)
    np.testing.assert_allclose(alone[0], wanted[0], **TOLERANCE)


@pytest.mark.parametrize("name", ["gpt2", "meta-llama/Llama-3.2-1B"])
def test_name_of_the_hub_gives_the_command_that_downloads_it(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = name.rpartition("/")[2]
    with pytest.raises(CheckpointError, match=f"fix:  hf download {name} --local-dir {folder}, then from_pre"):
        models.from_pretrained(name)


def test_folder_of_an_adapter_says_how_to_merge(tmp_path):
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(CheckpointError, match="seen: adapter_config.json and no config.json\n.*\n.*lora.merge"):
        models.from_pretrained(tmp_path)
