"""PyTorch's sharded programs in terms of placement and sbp: meshes, DTensor, tensor parallelism, FSDP2, checkpoints."""
