"""Where the tensors of Train_0 lie on 8 ranks.

S0 is split along dim 0, B broadcast, P a partial sum; one entry per axis of the placement.
Edit an entry to pin it; delete one to leave it to the planner. Load with `sbpjax.auto.load`.
"""

HIERARCHY = (8,)

# what optimizers update
PARAMETERS = {
    "model.*.up.weight": "S0",  # 2 × [256, 8] float32
    "model.*.up.bias": "S0",  # 2 × [256] float32
    "model.*.down.weight": "S1",  # 2 × [8, 256] float32
    "model.*.down.bias": "S0",  # 2 × [8] float32
}

# of optimizers
STATE = {
    "model.*.up.weight:exp_avg": "S0",  # 2 × [256, 8] float32
    "model.*.up.weight:exp_avg_sq": "S0",  # 2 × [256, 8] float32
    "model.*.up.bias:exp_avg": "S0",  # 2 × [256] float32
    "model.*.up.bias:exp_avg_sq": "S0",  # 2 × [256] float32
    "model.*.down.weight:exp_avg": "S1",  # 2 × [8, 256] float32
    "model.*.down.weight:exp_avg_sq": "S1",  # 2 × [8, 256] float32
    "model.*.down.bias:exp_avg": "S0",  # 2 × [8] float32
    "model.*.down.bias:exp_avg_sq": "S0",  # 2 × [8] float32
}

# arguments of the step
BATCH = {
    "x": "B",  # [16, 8] float32
    "y": "B",  # [16, 8] float32
}

# what one module hands to another
ACTIVATIONS = {
    "model.*.up.output": "S1",  # 2 × [16, 256] float32
    "model.*.down.output": "P",  # 2 × [16, 8] float32
    "model.0.output": "B",  # [16, 8] float32
    "model.output": "B",  # [16, 8] float32
}
