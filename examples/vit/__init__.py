"""A ViT that reads handwritten digits."""
