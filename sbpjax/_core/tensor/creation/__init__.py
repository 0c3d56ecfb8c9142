"""Creation and conversion of tensors."""
