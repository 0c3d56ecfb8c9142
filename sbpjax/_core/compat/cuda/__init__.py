"""What is true of the GPUs that JAX has, under `torch.cuda`'s names; the face is `sbpjax.cuda`."""
