"""Programs of libraries for text: accelerate, transformers' Trainer, peft, sentence-transformers, and two for training.

The Trainer's runs turn dropout off and shuffle by NumPy's order: its own order comes from the library's generator.
"""

import tempfile

import numpy as np
import torch
from torch.nn import functional as F

from tests.compat.libraries.kit import digest, fill, integers, numbers, tensor, train


class _Rows(torch.utils.data.Dataset):
    """Rows of tokens of different lengths, with labels."""

    def __init__(self, count, labels):
        lengths = np.random.default_rng(5).integers(4, 12, count)
        self.rows = [integers(f"row{i}", 90, int(n)).tolist() for i, n in enumerate(lengths)]
        self.labels = [int(sum(row) % 3) if labels is None else row[:labels] for row in self.rows]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"input_ids": self.rows[i], "attention_mask": [1] * len(self.rows[i]), "labels": self.labels[i]}


def _pad(rows):
    """Collate rows into a batch as long as its longest row."""
    longest = {name: max(len(row[name]) for row in rows) for name in rows[0] if isinstance(rows[0][name], list)}
    fills = {"input_ids": 0, "attention_mask": 0, "labels": -100}
    return {
        name: torch.tensor(
            [
                row[name] + [fills[name]] * (longest[name] - len(row[name])) if name in longest else row[name]
                for row in rows
            ]
        )
        for name in rows[0]
    }


def _trainer(model, folder, rows, steps=20, batch=4, **options):
    from transformers import Trainer, TrainingArguments

    class InOrder(Trainer):
        def _get_train_sampler(self, *args, **kwargs):
            return torch.utils.data.SequentialSampler(self.train_dataset)

    arguments = TrainingArguments(
        folder, max_steps=steps, per_device_train_batch_size=batch, learning_rate=1e-3, logging_steps=1, report_to=[],
        save_steps=10, disable_tqdm=True, use_cpu=True, **options,
    )  # fmt: skip
    return InOrder(model=model, args=arguments, train_dataset=rows, eval_dataset=rows, data_collator=_pad)


def _logged(trainer):
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def _bert():
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=90, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, num_labels=3,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return fill(BertForSequenceClassification(config))


def trainer_bert():
    """BERT classifies rows, padded per batch: 20 losses, evaluation, and an equal run resumed in the middle."""
    rows = _Rows(24, None)
    with tempfile.TemporaryDirectory() as folder:
        trainer = _trainer(_bert(), folder, rows)
        trainer.train()
        losses, evaluated = _logged(trainer), trainer.evaluate()["eval_loss"]
        again = _trainer(_bert(), folder, rows)
        again.train(resume_from_checkpoint=f"{folder}/checkpoint-10")
        resumed = _logged(again)
    assert len(losses) == len(resumed) == 20
    np.testing.assert_allclose(resumed, losses, rtol=0, atol=1e-6)
    return [*losses, evaluated]


def _llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=90, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64,
    )  # fmt: skip
    return fill(LlamaForCausalLM(config))


def trainer_llama_lora():
    """Llama with LoRA of peft under the Trainer: 20 losses, merged weights, generated tokens."""
    from peft import LoraConfig, get_peft_model

    rows = _Rows(24, 99)
    model = get_peft_model(_llama(), LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"]))
    with torch.no_grad():
        for name, value in model.named_parameters():
            if "lora_" in name:
                value.copy_(torch.from_numpy(numbers(name, *value.shape, scale=0.05)))
    with tempfile.TemporaryDirectory() as folder:
        trainer = _trainer(model, folder, rows)
        trainer.train()
        losses = _logged(trainer)
    merged = model.merge_and_unload().eval()
    tokens = merged.generate(torch.tensor([rows.rows[0][:4]]), max_new_tokens=6, do_sample=False, pad_token_id=0)
    return [*losses, *tokens.flatten().tolist()]


def peft_dora():
    """DoRA of peft: three steps, and the state that is saved."""
    from peft import LoraConfig, get_peft_model, get_peft_model_state_dict

    model = get_peft_model(_llama(), LoraConfig(r=2, use_dora=True, target_modules=["q_proj", "down_proj"]))
    with torch.no_grad():
        for name, value in model.named_parameters():
            if "lora_A" in name or "lora_B" in name:
                value.copy_(torch.from_numpy(numbers(name, *value.shape, scale=0.05)))
    tokens = integers("tokens", 90, 2, 10)
    losses = train(model, lambda i: model(input_ids=tokens, labels=tokens).loss)
    state = get_peft_model_state_dict(model)
    return losses + [len(state)] + digest(state[sorted(state)[0]])


def _t5():
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=90, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, dropout_rate=0.0,
        decoder_start_token_id=0, pad_token_id=0,
    )  # fmt: skip
    return fill(T5ForConditionalGeneration(config))


def trainer_t5():
    """T5 under the Trainer: 20 losses and a generated sequence."""
    model, rows = _t5(), _Rows(24, 5)
    with tempfile.TemporaryDirectory() as folder:
        trainer = _trainer(model, folder, rows)
        trainer.train()
    tokens = model.eval().generate(torch.tensor([rows.rows[0][:4]]), max_new_tokens=6, do_sample=False)
    return [*_logged(trainer), *tokens.flatten().tolist()]


def accelerate_loop():
    """A loop of accelerate: accumulation over two batches, clipping, a schedule, state saved and loaded."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = fill(torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.GELU(), torch.nn.Linear(16, 3)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    data = torch.utils.data.TensorDataset(tensor("x", 16, 6), integers("y", 3, 16))
    loader = torch.utils.data.DataLoader(data, batch_size=2)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    losses = []
    with tempfile.TemporaryDirectory() as folder:
        for epoch in range(2):
            for x, y in loader:
                with accelerator.accumulate(model):
                    loss = F.cross_entropy(model(x), y)
                    accelerator.backward(loss)
                    if accelerator.sync_gradients:
                        accelerator.clip_grad_norm_(model.parameters(), 1.0)
                    optimizer.step()
                    schedule.step()
                    optimizer.zero_grad()
                losses.append(accelerator.gather(loss.detach()).mean().item())
            if epoch == 0:
                accelerator.save_state(folder)
        end = digest(accelerator.unwrap_model(model)[0].weight)
        accelerator.load_state(folder)
    return losses + end + digest(accelerator.unwrap_model(model)[0].weight)


def sentence_transformer():
    """Sentences embedded by a small BERT with mean pooling, and two steps of a ranking loss."""
    from sentence_transformers.sentence_transformer.modules import Pooling

    model = _bert().bert
    pooling = Pooling(32, pooling_mode="mean")
    tokens, mask = integers("tokens", 90, 4, 8), torch.ones(4, 8, dtype=torch.long)
    mask[:, 6:] = 0

    def embed():
        made = {"token_embeddings": model(tokens, mask).last_hidden_state, "attention_mask": mask}
        return F.normalize(pooling(made)["sentence_embedding"])

    losses = train(model, lambda i: F.cross_entropy(embed() @ embed().T * 20, torch.arange(4)), steps=2)
    return losses + digest(embed())


def torchmetrics_values():
    """Metrics of torchmetrics over two batches."""
    from torchmetrics import (
        AUROC,
        Accuracy,
        AveragePrecision,
        CalibrationError,
        CohenKappa,
        ConfusionMatrix,
        F1Score,
        MeanMetric,
        MeanSquaredError,
        PearsonCorrCoef,
        R2Score,
        SpearmanCorrCoef,
    )

    found = []
    classes = {"task": "multiclass", "num_classes": 3}
    for metric in (Accuracy(**classes), F1Score(**classes, average="macro"), AUROC(**classes), CohenKappa(**classes),
                   AveragePrecision(**classes), CalibrationError(**classes), ConfusionMatrix(**classes)):  # fmt: skip
        for i in range(2):
            metric.update(tensor(f"p{i}", 20, 3).softmax(-1), integers(f"t{i}", 3, 20))
        found += metric.compute().float().flatten().tolist()
    for metric in (MeanSquaredError(), PearsonCorrCoef(), SpearmanCorrCoef(), R2Score()):
        for i in range(2):
            metric.update(tensor(f"a{i}", 20), tensor(f"b{i}", 20))
        found += [metric.compute().item()]
    mean = MeanMetric(nan_strategy="ignore")
    mean.update(torch.tensor(1.5))
    mean.update(torch.tensor([float("nan"), 4.0]))
    return [*found, mean.compute().item(), torch.ones(())[torch.tensor(True)].item()]


def schedulefree_adamw():
    """AdamW of schedulefree, through foreach ops and without."""
    import schedulefree

    found = []
    for foreach in (True, False):
        model = fill(torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)))
        optimizer = schedulefree.AdamWScheduleFree(
            model.parameters(), lr=0.01, warmup_steps=2, weight_decay=0.1, foreach=foreach
        )
        optimizer.train()
        x, y = tensor("x", 8, 6), tensor("y", 8, 1)
        found += train(model, lambda i, m=model: F.mse_loss(m(x), y), steps=5, optimizer=optimizer)  # noqa: B023
        optimizer.eval()
        found += digest(model[0].weight)
    return found


def trl_trainers():
    """The trainers of trl can be imported; its loss of preferences is that of PyTorch."""
    from trl import DPOTrainer, GRPOTrainer, SFTTrainer

    names = [trainer.__name__ for trainer in (DPOTrainer, GRPOTrainer, SFTTrainer)]
    from trl.trainer.utils import entropy_from_logits, selective_log_softmax

    logits, tokens = tensor("logits", 2, 6, 20), integers("tokens", 20, 2, 6)
    return names + digest(selective_log_softmax(logits, tokens)) + digest(entropy_from_logits(logits))
