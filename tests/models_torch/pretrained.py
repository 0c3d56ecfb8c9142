"""Models of `transformers` from a folder and into one: a program that PyTorch runs, and sbpjax in its place.

    python pretrained.py write FOLDER                            # PyTorch: models of random weights, and its numbers
    python -m sbpjax.run --as torch pretrained.py use FOLDER     # the same steps, from the same files
    python pretrained.py read FOLDER                             # PyTorch again: what was saved there

Every part writes its numbers to an ``.npz`` file of its name.
"""

import sys
from pathlib import Path

import numpy as np
import torch
import transformers as t

SIZES = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 32, "intermediate_size": 64}
TOKENS = {"vocab_size": 64, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
STILL = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
GPT2 = {"n_positions": 32, "n_embd": 32, "n_layer": 2, "n_head": 4}
GPT2_STILL = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
MODELS = {
    "llama": (t.LlamaForCausalLM, t.LlamaConfig, {"num_key_value_heads": 2, **SIZES, **TOKENS}),
    "gpt2": (t.GPT2LMHeadModel, t.GPT2Config, {**GPT2, **GPT2_STILL, **TOKENS}),
    "bert": (t.BertForMaskedLM, t.BertConfig, {"max_position_embeddings": 32, **SIZES, **STILL, **TOKENS}),
    "vit": (
        t.ViTForImageClassification,
        t.ViTConfig,
        {"image_size": 32, "patch_size": 8, "num_labels": 4, **SIZES, **STILL},
    ),
}
GENERATIVE = ("llama", "gpt2")
LR, STEPS = 1e-3, 2


def batch(name):
    rng = np.random.default_rng(0)
    if name == "vit":
        images = rng.standard_normal((8, 3, 32, 32)).astype("f")
        return {"pixel_values": torch.from_numpy(images), "labels": torch.from_numpy(rng.integers(0, 4, (8,)))}
    tokens = torch.from_numpy(rng.integers(3, 64, (8, 12)))
    return {"input_ids": tokens, "labels": tokens}


def logits(model, name):
    with torch.no_grad():
        return model(**batch(name)).logits.numpy()


def exercise(folder, saved):
    """Load every model, look at it, train it, let it write, and save it."""
    found = {}
    for name, (cls, _, _) in MODELS.items():
        model = cls.from_pretrained(folder / name)
        found[f"{name} logits"] = logits(model, name)
        if name in GENERATIVE:
            options = {"max_new_tokens": 5, "do_sample": False}
            found[f"{name} tokens"] = model.generate(batch(name)["input_ids"][:2, :4], **options).numpy()
        optimizer = torch.optim.AdamW(model.parameters(), lr=LR)
        for step in range(STEPS):
            loss = model.train()(**batch(name)).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found[f"{name} loss {step}"] = loss.detach().numpy()
        found[f"{name} trained"] = logits(model.eval(), name)
        # Llama in several files with an index, as large models are
        model.save_pretrained(saved / name, **({"max_shard_size": "20KB"} if name == "llama" else {}))
    return found


def graphs(folder, saved):
    """Train every model in a graph that the planner lays out on eight devices, and save it from there."""
    import sbpjax as flow

    found = {}
    for name, (cls, _, _) in MODELS.items():
        model = cls.from_pretrained(folder / name).train()
        inputs = batch(name)

        class Train(flow.nn.Graph):
            def __init__(self, model, keys):
                super().__init__()
                self.model, self.keys = model, keys
                self.add_optimizer(torch.optim.AdamW(model.parameters(), lr=LR))
                self.config.enable_auto_parallel(True, placement=flow.placement.all("cpu"))

            def build(self, *values):
                cache = {"use_cache": False} if "input_ids" in self.keys else {}
                loss = self.model(**dict(zip(self.keys, values, strict=True)), **cache).loss
                loss.backward()
                return loss

        train = Train(model, list(inputs))
        for step in range(STEPS):
            found[f"{name} loss {step}"] = np.asarray(train(*inputs.values()).item())
        found[f"{name} global"] = np.asarray(all(p.is_global for p in model.parameters()))
        found[f"{name} split"] = np.asarray(any(s != flow.sbp.broadcast for p in model.parameters() for s in p.sbp))
        model.save_pretrained(saved / name)
    return found


def main(part, folder):
    if part == "write":
        torch.manual_seed(0)
        for name, (cls, config, options) in MODELS.items():
            cls(config(**options)).save_pretrained(folder / name)
        numbers = exercise(folder, folder / "torch")
        half = t.LlamaForCausalLM.from_pretrained(folder / "llama", dtype=torch.bfloat16)
        half.save_pretrained(folder / "torch" / "half")
    elif part == "use":
        numbers = exercise(folder, folder / "trained")
        half = t.LlamaForCausalLM.from_pretrained(folder / "llama", dtype=torch.bfloat16)
        assert {p.dtype for p in half.parameters()} == {torch.bfloat16}
        half.save_pretrained(folder / "half")
        numbers |= {f"graph {key}": value for key, value in graphs(folder, folder / "graph").items()}
    else:
        numbers = {}
        for place in ("trained", "graph"):
            for name, (cls, _, _) in MODELS.items():
                numbers[f"{place} {name}"] = logits(cls.from_pretrained(folder / place / name), name)
    np.savez(folder / f"{part}.npz", **numbers)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
