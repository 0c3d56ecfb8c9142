"""Where sbpjax differs from OneFlow 0.9.0 on purpose: every class, its reason, and which facts are in it.

A fact that is neither equal nor in a class fails the tests, and so does a class without facts.
`docs/reference/differences.md` is written from this table (`oracle.document`), and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.oracle.notation import codes_of
from tests.oracle.signatures import CHEAPER, DEARER, ONLY_HERE, TIE, Outcome


@dataclass(frozen=True)
class Difference:
    """One class of difference in signatures.

    Attributes:
        name: a short name.
        reason: why it is so, for the reader of the documentation.
        holds: whether an outcome belongs to it.
    """

    name: str
    reason: str
    holds: Callable[[Outcome], bool]


def _codes(text: str) -> list[int]:
    return [c for t in text.replace("|", ";").split(";") for c in codes_of(t)]


def _has_partial(text: str) -> bool:
    return any(c == -2 for c in _codes(text))


def _differing(o: Outcome) -> list[tuple[int, int]]:
    return [(a, b) for a, b in zip(_codes(o.ours), _codes(o.theirs), strict=True) if a != b]


SIGNATURES = (
    Difference(
        "cheaper",
        "One rule for every number of axes: the plan that moves the fewest bytes. OneFlow's eager rule in 1-D treats "
        "broadcast → split "
        "as nearly infinite and counts matching inputs before bytes; in 2-D it is free, but any conversion to "
        "partial_sum is "
        "forbidden, and two axes that change together are charged as one step over all ranks. Here broadcast → split "
        "is free "
        "everywhere, because each rank only cuts its part out.",
        lambda o: o.kind == CHEAPER,
    ),
    Difference(
        "shorter than the ranks",
        "A split dim may be shorter than the number of ranks: the last ranks hold nothing. OneFlow cannot make such "
        "a tensor.",
        lambda o: o.kind == ONLY_HERE and o.theirs.startswith("!input"),
    ),
    Difference(
        "no kernel in OneFlow",
        "OneFlow has no signature or kernel for the case and raises; here an op runs under every sbp.",
        lambda o: o.kind == ONLY_HERE and not o.theirs.startswith("!input"),
    ),
    Difference(
        "wrong value in OneFlow",
        "OneFlow's signature is wrong: the gathered result differs from the op on one device (for example an integer "
        "cast or a norm "
        "kept as partial_sum, or a batch_norm whose statistics are those of one rank). Here values never depend on "
        "the layout.",
        lambda o: o.wrong_value,
    ),
    Difference(
        "not linear",
        "OneFlow keeps isnan of a partial_sum as partial_sum. A sum is NaN not only when a summand is, and a truth "
        "value per summand "
        "is no summand of a truth value: the sum comes first here.",
        lambda o: o.op == "isnan" and _has_partial(o.theirs),
    ),
    Difference(
        "gather not deferred",
        "OneFlow adds a split operand to a partial one by filling the split one with zeros: this moves no bytes "
        "now, but the reader of the "
        "partial result has to reduce it. Here that zero-fill is charged as the all-gather it defers, so that the "
        "partial operand is "
        "reduced to the layout of the other one.",
        lambda o: o.kind == DEARER and _has_partial(o.theirs),
    ),
    Difference(
        "one op at a time",
        "An expression of several ops is planned op by op, as it runs; the layout that is cheapest for the first can "
        "cost the "
        "next more than OneFlow's. A traced program is planned as a whole.",
        lambda o: o.kind == DEARER and o.ops > 1,
    ),
    Difference(
        "equally cheap, reduced",
        "As many bytes either way. OneFlow's result is partial_sum on some axis and still has to be reduced; ours is "
        "split or broadcast "
        "there.",
        lambda o: o.kind == TIE and any(t == -2 for _, t in _differing(o)),
    ),
    Difference(
        "equally cheap, kept partial",
        "As many bytes either way. The result stays partial_sum, which the planner reaches with fewer conversions "
        "than OneFlow's layout.",
        lambda o: o.kind == TIE and any(m == -2 for m, _ in _differing(o)),
    ),
    Difference(
        "equally cheap, another dim",
        "As many bytes either way; another dim of the result is split. Ties go to fewer conversions, then to more "
        "divided work, then to "
        "the order of the table, which for ops of several primitives is not that of OneFlow's list for the op.",
        lambda o: o.kind == TIE and all(m >= 0 and t >= 0 for m, t in _differing(o)),
    ),
    Difference(
        "equally cheap, divided or not",
        "As many bytes either way; on some axis one result is broadcast and the other split. Ties go to fewer "
        "conversions, then to more "
        "divided work.",
        lambda o: o.kind == TIE and all(m != -2 and t != -2 for m, t in _differing(o)),
    ),
)


@dataclass(frozen=True)
class SnippetDifference:
    """One class of difference in recorded snippets.

    Attributes:
        name: a short name.
        reason: why it is so.
        file: the file of facts.
        ids: the snippets.
        ours: what happens here: another ``value``, or it ``raises`` an error of four parts.
    """

    name: str
    reason: str
    file: str
    ids: tuple[str, ...]
    ours: str = "value"


_ORDER = (
    "OneFlow sorts the ranks of a placement: [3, 2, 1, 0] is [0, 1, 2, 3]. Here the order is meaningful, as in a JAX "
    "mesh: the k-th rank "
    "of the placement holds the k-th part, and two orders are two placements."
)
_NAMES = "The names that dir() shows: ours has more of them, and no reference to the package itself."
_ONE_VALUE = (
    "A global tensor has one value, whatever its sbp. OneFlow fills every summand of a partial_sum with the whole "
    "value (the sum of an "
    "arange over four ranks is four times it), casts, tests and norms summand by summand, and takes batch statistics "
    "per rank."
)
_RANDOM = (
    "Random numbers are a function of the seed and the element's global index, so they are the same under every sbp "
    "and on every "
    "placement; OneFlow seeds by rank, and repeats one mask on every rank of a split. The streams themselves differ."
)
_BYTES = "The op's plan moves the fewest bytes; see the signatures."
_GRAD_SBP = "to_global of a local tensor takes grad_sbp too; in OneFlow it is an unknown keyword."

SNIPPETS = (
    SnippetDifference("order of ranks", _ORDER, "api_behaviour", ("placement_repr_variants", "placement_eq")),
    SnippetDifference("order of ranks", _ORDER, "api_behaviour_2", ("reordered_placement_2d",)),
    SnippetDifference("order of ranks", _ORDER, "errors", ("placement_unordered",)),
    SnippetDifference("order of ranks", _ORDER, "errors", ("reorder_ranks_placement",), "raises"),
    SnippetDifference("names", _NAMES, "api_behaviour", ("placement_dir", "sbp_dir", "sbp_sbp_dir")),
    SnippetDifference(
        "hierarchy", "placement.hierarchy is a plain tuple, not a Size.", "api_behaviour", ("placement_hierarchy",)
    ),
    SnippetDifference(
        "old spelling",
        "placement(device_type=, device_ids=) is deprecated in OneFlow and not accepted here.",
        "api_behaviour",
        ("placement_kw",),
    ),
    SnippetDifference("many dims", "A tensor may have 64 dims; OneFlow stops at 6.", "api_behaviour", ("sbp_call",)),
    SnippetDifference(
        "many dims", "A tensor may have 64 dims; OneFlow stops at 6.", "api_behaviour_2", ("sbp_split_max",)
    ),
    SnippetDifference("sbp strings", 'An sbp may be written as a string: "S0,B".', "errors", ("sbp_string",)),
    SnippetDifference("one value", _ONE_VALUE, "api_behaviour", ("create_arange",)),
    SnippetDifference(
        "one value", _ONE_VALUE, "api_behaviour_2", ("create_arange_P", "cast_int_of_P", "isnan_of_P", "norm_of_S0")
    ),
    SnippetDifference("one value", _ONE_VALUE, "grad", ("bn_dp_train",)),
    SnippetDifference(
        "one value",
        "A broadcast tensor has one value; OneFlow's gradient of a summand differs from rank to rank.",
        "grad",
        ("g2l_P_nonleaf",),
        ours="raises",
    ),
    SnippetDifference(
        "random numbers",
        _RANDOM,
        "api_behaviour",
        (
            "rng_rand",
            "rng_randperm",
            "rng_randn_S0_again",
            "rng_randn_B_noseed",
            "rng_dropout_B",
            "rng_dropout_P",
            "rng_local_seed",
            "rng_uniform_",
            "rng_normal_",
            "rng_bernoulli",
            "module_to_global",
        ),
    ),
    SnippetDifference(
        "random numbers",
        _RANDOM,
        "api_behaviour_2",
        ("rng_dropout_S0_seedless", "rng_module_dropout", "rng_dropout_2d", "rng_dropout_rankseed_S0"),
    ),
    SnippetDifference(
        "new_ones",
        "new_ones takes its size as numbers, as in PyTorch; OneFlow raises.",
        "api_behaviour",
        ("new_methods",),
    ),
    SnippetDifference("copy_", "copy_ returns the tensor, as in PyTorch.", "api_behaviour", ("copy_",)),
    SnippetDifference(
        "eye", "eye can be made under any sbp; OneFlow has broadcast only.", "api_behaviour_2", ("create_eye_S0",)
    ),
    SnippetDifference(
        "device of a global tensor",
        "x.device of a global tensor is a device that knows the placement: tensors made with device=x.device are "
        "global there, in broadcast, so that programs which put their constants where their inputs are run on "
        "placements. OneFlow raises.",
        "errors",
        ("global_device_attr",),
    ),
    SnippetDifference(
        "0-d",
        "The local part of a 0-d tensor is 0-d; OneFlow's has one dim here.",
        "api_behaviour_2",
        ("loss_to_local_P",),
    ),
    SnippetDifference(
        "strides",
        "The strides of a global tensor are those of its logical shape.",
        "api_behaviour_2",
        ("size_strides",),
    ),
    SnippetDifference(
        "fewest bytes",
        _BYTES,
        "api_behaviour_2",
        ("bincount_S0", "masked_select_S0", "scatter_nd_S0S0", "relu_P", "add_P_B", "P_unary_set"),
    ),
    SnippetDifference(
        "fewest bytes",
        _BYTES,
        "grad",
        (
            "mm_S1_S1",
            "mm_B_S0",
            "mm_P_S1",
            "add_S0_B",
            "add_S1_B",
            "add_B_P",
            "add_P_B",
            "bias_B_S0",
            "bias_P_S0",
            "bias_S1_B",
            "bias_P_B",
            "emb_S0_P",
            "mlp_dp_tB",
            "mlp_zero3",
            "mlp_d2_zero",
        ),
    ),
    SnippetDifference(
        "runs here", "OneFlow has no such operator for a partial_sum and raises.", "api_behaviour_2", ("py_scalar_ops",)
    ),
    SnippetDifference(
        "grad_sbp of local tensors",
        _GRAD_SBP,
        "grad",
        tuple(
            f"l2g_{a}_g{b}" for a, bs in (("S0", "S0 S1 P"), ("S1", "S0 S1 P"), ("P", "S0 S1 B P")) for b in bs.split()
        ),
    ),
    SnippetDifference(
        "data parallelism of global modules",
        "DistributedDataParallel of a global module calls it as it is: its layouts decide the reductions. "
        "OneFlow raises.",
        "errors",
        ("ddp_global",),
    ),
    SnippetDifference(
        "grad_sbp is checked",
        "A grad_sbp that does not fit the placement is an error at once, not in a later backward.",
        "errors",
        ("grad_sbp_wrong_len",),
        "raises",
    ),
    SnippetDifference(
        "grad of another kind",
        "The grad of a global tensor is global; OneFlow takes a local one and fails later.",
        "errors",
        ("assign_grad_local",),
        "raises",
    ),
    SnippetDifference(
        "one rank",
        "On one rank all layouts are the same; OneFlow keeps broadcast, here split is kept.",
        "errors",
        ("add_two_rank0",),
    ),
    SnippetDifference(
        "0-d local tensors",
        "A 0-d local tensor mixes with global ones, as a number does.",
        "errors",
        ("scalar_local_tensor", "scalar_local_tensor_rev"),
    ),
)


def class_of(o: Outcome) -> Difference | None:
    """Return the first class of a differing outcome, or None."""
    return next((d for d in SIGNATURES if d.holds(o)), None)
