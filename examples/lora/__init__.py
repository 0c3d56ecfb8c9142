"""A Llama of a Hugging Face folder, fine-tuned with LoRA."""
