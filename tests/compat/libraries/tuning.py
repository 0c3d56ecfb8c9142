"""Programs for tuning language models: peft's methods, and trl's supervised and preference training."""

import tempfile

import torch

from tests.compat.libraries.kit import integers, tensor, train
from tests.compat.libraries.language import _llama, _logged


def _methods():
    """Return a configuration of each method, by its name."""
    import peft

    layers, task = {"target_modules": ["q_proj", "v_proj"]}, {"task_type": "CAUSAL_LM"}
    scaled = {"target_modules": ["k_proj", "down_proj"], "feedforward_modules": ["down_proj"]}
    ranks = {"init_r": 4, "target_r": 2, "total_step": 10, "tinit": 1, "tfinal": 2, "deltaT": 1}
    bank = {"num_vectors": 8, "vector_length": 4}
    return {
        "rslora": peft.LoraConfig(r=2, use_rslora=True, **layers),
        "adalora": peft.AdaLoraConfig(**ranks, **layers, **task),
        "ia3": peft.IA3Config(**scaled, **task),
        "prefix": peft.PrefixTuningConfig(num_virtual_tokens=3, **task),
        "prompt": peft.PromptTuningConfig(num_virtual_tokens=3, **task),
        "p-tuning": peft.PromptEncoderConfig(num_virtual_tokens=3, encoder_hidden_size=16, **task),
        "adaption": peft.AdaptionPromptConfig(adapter_len=3, adapter_layers=1, **task),
        "loha": peft.LoHaConfig(r=2, **layers),
        "lokr": peft.LoKrConfig(r=2, **layers),
        "oft": peft.OFTConfig(r=0, oft_block_size=4, **layers),
        "boft": peft.BOFTConfig(boft_block_size=4, **layers),
        "hra": peft.HRAConfig(r=2, **layers),
        "vblora": peft.VBLoRAConfig(r=2, **bank, **layers),
        "norms": peft.LNTuningConfig(target_modules=["input_layernorm"]),
    }


def peft_methods():
    """Two steps of a small Llama with each method of peft; AdaLoRA moves its ranks."""
    from peft import get_peft_model

    tokens, losses = integers("tokens", 90, 2, 10), []
    for name, config in _methods().items():
        model = get_peft_model(_llama(), config)
        with torch.no_grad():
            for place, value in model.named_parameters():
                if value.requires_grad:
                    value.copy_(tensor(place, *value.shape, scale=0.05))
        losses += train(model, lambda i, model=model: model(input_ids=tokens, labels=tokens).loss, steps=2)
        if name == "adalora":
            model.base_model.update_and_allocate(1)
            losses.append(model(input_ids=tokens, labels=tokens).loss.item())
    return losses


def _tokenizer():
    """Return a tokenizer of words ``w0`` to ``w86``."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = ["<pad>", "<eos>", "<unk>", *(f"w{i}" for i in range(87))]
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")


def _losses(trainer, config, rows, **options):
    """Return five losses of a trainer of trl on rows in their order."""
    from datasets import Dataset

    class InOrder(trainer):
        def _get_train_sampler(self, *args, **kwargs):
            return torch.utils.data.SequentialSampler(self.train_dataset)

    arguments = config(
        tempfile.mkdtemp(), max_steps=5, per_device_train_batch_size=2, learning_rate=1e-3, logging_steps=1,
        report_to=[], save_strategy="no", disable_tqdm=True, use_cpu=True, bf16=False, gradient_checkpointing=False,
        max_length=16,
    )  # fmt: skip
    data = Dataset.from_list(rows)
    made = InOrder(model=_llama(), args=arguments, train_dataset=data, processing_class=_tokenizer(), **options)
    made.model.config.use_cache = False
    made.train()
    return _logged(made)


def trl_training():
    """trl's SFTTrainer on texts, and its DPOTrainer on preferred and rejected continuations: five losses each."""
    from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

    def text(*numbers):
        return " ".join(f"w{i}" for i in numbers)

    rows = [{"text": text(*((7 * i + j) % 87 for j in range(4 + i % 5)))} for i in range(12)]
    pairs = [
        {"prompt": text(i, i + 1, i + 2), "chosen": text(i + 3, i + 4), "rejected": text(i + 9, i + 12)}
        for i in range(12)
    ]
    return _losses(SFTTrainer, SFTConfig, rows) + _losses(DPOTrainer, DPOConfig, pairs, ref_model=_llama())
