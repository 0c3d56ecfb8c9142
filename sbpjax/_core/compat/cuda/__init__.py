"""GPU facts and controls under `torch.cuda`'s names; re-exported by `sbpjax.cuda`."""
