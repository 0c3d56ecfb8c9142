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
        "sbpjax has one rule for any number of axes: the plan that moves the fewest bytes. broadcast → split is "
        "free, because each rank only cuts out its part. OneFlow's eager rule in 1-D gives broadcast → split a nearly "
        "infinite cost, and prefers matching inputs to fewer bytes. In 2-D, broadcast → split is free, but conversions "
        "to partial_sum are forbidden, and two axes that change together are charged as one step over all ranks.",
        lambda o: o.kind == CHEAPER,
    ),
    Difference(
        "shorter than the ranks",
        "A split dim may be shorter than the number of ranks; the last ranks then hold nothing. OneFlow cannot create "
        "such a tensor.",
        lambda o: o.kind == ONLY_HERE and o.theirs.startswith("!input"),
    ),
    Difference(
        "no kernel in OneFlow",
        "OneFlow has no signature or kernel for the case and raises an error. In sbpjax, an op runs under every sbp.",
        lambda o: o.kind == ONLY_HERE and not o.theirs.startswith("!input"),
    ),
    Difference(
        "wrong value in OneFlow",
        "OneFlow's signature is wrong: the gathered result differs from the result on one device. Examples are an "
        "integer cast or a norm that stays partial_sum, and a batch_norm with the statistics of one rank. In sbpjax, "
        "values never depend on the layout.",
        lambda o: o.wrong_value,
    ),
    Difference(
        "not linear",
        "In OneFlow, isnan of a partial_sum is a partial_sum. But a sum may be NaN although no summand is, and the "
        "truth values of summands do not add up to the truth value of the sum. sbpjax reduces the sum first.",
        lambda o: o.op == "isnan" and _has_partial(o.theirs),
    ),
    Difference(
        "gather not deferred",
        "OneFlow adds a split operand to a partial_sum by filling the split operand with zeros. This moves no bytes "
        "immediately, but the op that reads the result has to reduce it. sbpjax counts the zero-fill at the cost of "
        "the all-gather that it defers, so it reduces the partial_sum to the layout of the other operand instead.",
        lambda o: o.kind == DEARER and _has_partial(o.theirs),
    ),
    Difference(
        "one op at a time",
        "An eager expression is planned op by op, and the cheapest layout for the first op may cost the next op more "
        "than OneFlow's. A traced program is planned as a whole.",
        lambda o: o.kind == DEARER and o.ops > 1,
    ),
    Difference(
        "equally cheap, reduced",
        "Both move the same number of bytes. OneFlow's result is partial_sum on some axis and still has to be "
        "reduced; sbpjax's result is split or broadcast there.",
        lambda o: o.kind == TIE and any(t == -2 for _, t in _differing(o)),
    ),
    Difference(
        "equally cheap, kept partial",
        "Both move the same number of bytes. The result stays partial_sum, which takes fewer conversions than "
        "OneFlow's layout.",
        lambda o: o.kind == TIE and any(m == -2 for m, _ in _differing(o)),
    ),
    Difference(
        "equally cheap, another dim",
        "Both move the same number of bytes, but they split different dims of the result. sbpjax prefers fewer "
        "conversions, then less repeated work, then the order of strategies in its table, which may differ from "
        "OneFlow's for ops that consist of several primitives.",
        lambda o: o.kind == TIE and all(m >= 0 and t >= 0 for m, t in _differing(o)),
    ),
    Difference(
        "equally cheap, divided or not",
        "Both move the same number of bytes, but on some axis, one result is broadcast and the other split. sbpjax "
        "prefers fewer conversions, then less repeated work.",
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
    "OneFlow sorts the ranks of a placement: [3, 2, 1, 0] becomes [0, 1, 2, 3]. In sbpjax, the order matters, as in a "
    "JAX mesh: the k-th rank of the placement holds the k-th part, and two orders are two placements."
)
_NAMES = "dir() shows more names in sbpjax, and no reference to the package itself."
_ONE_VALUE = (
    "A global tensor has one value, whatever its sbp. OneFlow fills every summand of a partial_sum with the whole "
    "value, so an arange on four ranks has four times its value. It also applies casts, tests and norms to each "
    "summand, and computes batch statistics per rank."
)
_RANDOM = (
    "Random numbers depend only on the seed and the element's global index, so they are the same under every sbp "
    "and on every placement. OneFlow seeds by rank, and repeats one mask on every rank of a split. The streams "
    "themselves also differ."
)
_BYTES = "The plan of the op moves the fewest bytes; see the layouts of results above."
_GRAD_SBP = "to_global of a local tensor also accepts grad_sbp; in OneFlow, it is an unknown keyword."

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
        "placement(device_type=, device_ids=) is deprecated in OneFlow and raises an error in sbpjax.",
        "api_behaviour",
        ("placement_kw",),
    ),
    SnippetDifference("many dims", "A tensor may have 64 dims; OneFlow allows 6.", "api_behaviour", ("sbp_call",)),
    SnippetDifference(
        "many dims", "A tensor may have 64 dims; OneFlow allows 6.", "api_behaviour_2", ("sbp_split_max",)
    ),
    SnippetDifference("sbp strings", 'An sbp may be written as a string: "S0,B".', "errors", ("sbp_string",)),
    SnippetDifference("one value", _ONE_VALUE, "api_behaviour", ("create_arange",)),
    SnippetDifference(
        "one value", _ONE_VALUE, "api_behaviour_2", ("create_arange_P", "cast_int_of_P", "isnan_of_P", "norm_of_S0")
    ),
    SnippetDifference("one value", _ONE_VALUE, "grad", ("bn_dp_train",)),
    SnippetDifference(
        "one value",
        "A broadcast tensor has one value; in OneFlow, the gradient of a summand differs between ranks.",
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
        "new_ones accepts its size as separate numbers, as in PyTorch; OneFlow raises an error.",
        "api_behaviour",
        ("new_methods",),
    ),
    SnippetDifference("copy_", "copy_ returns the tensor, as in PyTorch.", "api_behaviour", ("copy_",)),
    SnippetDifference(
        "eye", "eye accepts any sbp; OneFlow accepts only broadcast.", "api_behaviour_2", ("create_eye_S0",)
    ),
    SnippetDifference(
        "device of a global tensor",
        "x.device of a global tensor contains the placement: tensors created with device=x.device are global on it, "
        "as broadcast. Programs that create constants on the device of their inputs therefore work with global "
        "tensors. OneFlow raises an error.",
        "errors",
        ("global_device_attr",),
    ),
    SnippetDifference(
        "0-d",
        "The local part of a 0-d tensor is 0-d; OneFlow's has one dim.",
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
        "operators of a partial sum",
        "OneFlow has no such operator for a partial_sum and raises an error.",
        "api_behaviour_2",
        ("py_scalar_ops",),
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
        "DistributedDataParallel calls a global module unchanged, because its layouts determine the reductions. "
        "OneFlow raises an error.",
        "errors",
        ("ddp_global",),
    ),
    SnippetDifference(
        "grad_sbp is checked",
        "A grad_sbp that does not fit the placement raises an error immediately, not in a later backward.",
        "errors",
        ("grad_sbp_wrong_len",),
        "raises",
    ),
    SnippetDifference(
        "grad of another kind",
        "The grad of a global tensor must be global; OneFlow accepts a local one and fails later.",
        "errors",
        ("assign_grad_local",),
        "raises",
    ),
    SnippetDifference(
        "one rank",
        "On one rank, all layouts are the same. For mixed inputs, OneFlow returns broadcast and sbpjax returns split.",
        "errors",
        ("add_two_rank0",),
    ),
    SnippetDifference(
        "0-d local tensors",
        "A 0-d local tensor may be combined with global tensors, as a number may.",
        "errors",
        ("scalar_local_tensor", "scalar_local_tensor_rev"),
    ),
)


def class_of(o: Outcome) -> Difference | None:
    """Return the first class of a differing outcome, or None."""
    return next((d for d in SIGNATURES if d.holds(o)), None)
