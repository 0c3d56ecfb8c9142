"""What stays different, and why: program to the lines that differ (None: it ends in a TypeError)."""

DIFFERENT = {
    "autograd/085_retain": (("third",), "OneFlow raises an Exception of its own, here a RuntimeError, as in PyTorch"),
    "autograd/088_in_place": (
        ("grad",),
        "OneFlow's backward reads a value that was overwritten in place; here the one that the product was taken of",
    ),
    "checkpoints/249_whole_state": (
        ("next",),
        "a schedule made after optimizer.load_state_dict sets the rate back to the first one in OneFlow",
    ),
    "checkpoints/253_module_itself": (
        None,
        "a file that holds a class is code: saving a module keeps its state, and load returns that, not a module",
    ),
    "global_four/231_in_place_and_masks": (
        ("mixed",),
        "split + broadcast stays split, for which each rank cuts its part out; OneFlow gathers (docs/reference/differences.md)",
    ),
    "global_one/194_errors": (("device of global",), "x.device of a global tensor is a device (docs/reference/differences.md)"),
    "init/146_orthogonal_and_gains": (("orthogonal",), "the rows of OneFlow's orthogonal_ are not orthogonal"),
    "math/016_rounding": (
        ("%", "int //", "int %"),
        "-7 // 3 is -3 and -7 % 3 is 2, as in Python and PyTorch; OneFlow rounds towards zero, for integers alone in //",
    ),
    "optimizers/163_state_dict": (
        ("weight",),
        "a state_dict follows the optimizer as it goes on; OneFlow's shares the running means, but not the step",
    ),
    "random/263_generators": (("restored",), "OneFlow's Generator.set_state does not bring its numbers back"),
    "random/266_dropout_is_seeded": (("same",), "OneFlow's Dropout does not follow manual_seed"),
}
