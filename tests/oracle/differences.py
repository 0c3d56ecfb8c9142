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
        "For any number of axes, sbpjax has one rule: it chooses the plan that moves the fewest bytes. A conversion "
        "from broadcast to split is free, because each rank only cuts out its part. OneFlow's eager rule for one axis "
        "gives this conversion a nearly infinite cost, and prefers inputs whose layouts match to a plan with fewer "
        "bytes. Its rule for two axes makes the conversion free, but forbids conversions to partial_sum, and counts a "
        "change of both axes as one step over all ranks.",
        lambda o: o.kind == CHEAPER,
    ),
    Difference(
        "shorter than the ranks",
        "In sbpjax, the size of a split dim may be smaller than the number of ranks; the last ranks then hold nothing. "
        "OneFlow cannot create such a tensor.",
        lambda o: o.kind == ONLY_HERE and o.theirs.startswith("!input"),
    ),
    Difference(
        "no kernel in OneFlow",
        "OneFlow has no signature or kernel for these layouts and raises an error. In sbpjax, every op runs with "
        "every sbp.",
        lambda o: o.kind == ONLY_HERE and not o.theirs.startswith("!input"),
    ),
    Difference(
        "wrong value in OneFlow",
        "OneFlow's signature is wrong: the gathered result differs from the result on one device. Examples are the "
        "result of an integer cast or of a norm, which stays partial_sum, and a batch_norm with the statistics of one "
        "rank. In sbpjax, values never depend on the layout.",
        lambda o: o.wrong_value,
    ),
    Difference(
        "not linear",
        "In OneFlow, isnan of a partial_sum is a partial_sum. This is wrong, because a sum may be NaN although no "
        "summand is NaN, and the truth values of the summands do not add up to the truth value of the sum. sbpjax "
        "first reduces the partial_sum.",
        lambda o: o.op == "isnan" and _has_partial(o.theirs),
    ),
    Difference(
        "gather not deferred",
        "To add a split operand to a partial_sum, OneFlow pads the split operand with zeros. This moves no bytes "
        "immediately, but the op that reads the result has to reduce it. sbpjax gives the padding the cost of the "
        "all-gather that it defers, and therefore converts the partial_sum to the layout of the other operand instead.",
        lambda o: o.kind == DEARER and _has_partial(o.theirs),
    ),
    Difference(
        "one op at a time",
        "An eager expression is planned op by op, so the cheapest layout for the first op may make the next op more "
        "expensive than OneFlow's layout does. A traced program is planned as a whole.",
        lambda o: o.kind == DEARER and o.ops > 1,
    ),
    Difference(
        "equally cheap, reduced",
        "sbpjax and OneFlow move the same number of bytes. On some axis, OneFlow's result is partial_sum and still "
        "has to be reduced; sbpjax's result is split or broadcast on this axis.",
        lambda o: o.kind == TIE and any(t == -2 for _, t in _differing(o)),
    ),
    Difference(
        "equally cheap, kept partial",
        "sbpjax and OneFlow move the same number of bytes. In sbpjax, the result stays partial_sum, which needs fewer "
        "conversions than OneFlow's layout.",
        lambda o: o.kind == TIE and any(m == -2 for m, _ in _differing(o)),
    ),
    Difference(
        "equally cheap, another dim",
        "sbpjax and OneFlow move the same number of bytes, but they split different dims of the result. Among plans "
        "that move the same number of bytes, sbpjax chooses the one with the fewest conversions, then the one with "
        "the least repeated work, then the first in the table of strategies. For an op that consists of several "
        "primitives, this order may differ from OneFlow's.",
        lambda o: o.kind == TIE and all(m >= 0 and t >= 0 for m, t in _differing(o)),
    ),
    Difference(
        "equally cheap, divided or not",
        "sbpjax and OneFlow move the same number of bytes, but on some axis, one result is broadcast and the other is "
        "split. Among plans that move the same number of bytes, sbpjax chooses the one with the fewest conversions, "
        "then the one with the least repeated work.",
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
    "JAX mesh: the k-th rank in the placement holds the k-th part, and placements whose ranks are in different orders "
    "are different."
)
_NAMES = (
    "dir() of a placement or of an sbp shows more names in sbpjax. dir() of OneFlow's module sbp also shows the "
    "package itself; in sbpjax, it does not."
)
_ONE_VALUE = (
    "A global tensor has one value, whatever its sbp. OneFlow fills every summand of a partial_sum with the whole "
    "value, so an arange on four ranks has four times its value. OneFlow also applies casts, tests (such as isnan) and "
    "norms to each summand, and computes batch statistics per rank."
)
_RANDOM = (
    "Random numbers depend only on the seed and the element's global index, so they are the same under every sbp "
    "and on every placement. In OneFlow, they depend on the seed of the rank, and every rank of a split tensor "
    "uses the same dropout mask. The streams of random numbers also differ."
)
_BYTES = "The plan of an op moves the fewest bytes; see [Layouts of results](#layouts-of-results)."
_GRAD_SBP = "to_global of a local tensor also accepts grad_sbp; in OneFlow, this keyword is unknown."

SNIPPETS = (
    SnippetDifference("order of ranks", _ORDER, "api_behaviour", ("placement_repr_variants", "placement_eq")),
    SnippetDifference("order of ranks", _ORDER, "api_behaviour_2", ("reordered_placement_2d",)),
    SnippetDifference("order of ranks", _ORDER, "errors", ("placement_unordered",)),
    SnippetDifference("order of ranks", _ORDER, "errors", ("reorder_ranks_placement",), "raises"),
    SnippetDifference("names", _NAMES, "api_behaviour", ("placement_dir", "sbp_dir", "sbp_sbp_dir")),
    SnippetDifference(
        "hierarchy",
        "placement.hierarchy is a plain tuple, not a Size as in OneFlow.",
        "api_behaviour",
        ("placement_hierarchy",),
    ),
    SnippetDifference(
        "old spelling",
        "placement(device_type=, device_ids=) is deprecated in OneFlow and raises an error in sbpjax.",
        "api_behaviour",
        ("placement_kw",),
    ),
    SnippetDifference(
        "many dims", "A tensor may have up to 64 dims; OneFlow allows up to 6.", "api_behaviour", ("sbp_call",)
    ),
    SnippetDifference(
        "many dims", "A tensor may have up to 64 dims; OneFlow allows up to 6.", "api_behaviour_2", ("sbp_split_max",)
    ),
    SnippetDifference("sbp strings", 'An sbp may be written as a string: "S0,B".', "errors", ("sbp_string",)),
    SnippetDifference("one value", _ONE_VALUE, "api_behaviour", ("create_arange",)),
    SnippetDifference(
        "one value", _ONE_VALUE, "api_behaviour_2", ("create_arange_P", "cast_int_of_P", "isnan_of_P", "norm_of_S0")
    ),
    SnippetDifference("one value", _ONE_VALUE, "grad", ("bn_dp_train",)),
    SnippetDifference(
        "gradient of a partial sum",
        "The gradient of a partial_sum is broadcast, so it must be the same on all ranks. If it is not, sbpjax raises "
        "an error; OneFlow accepts it.",
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
        "new_ones accepts a size given as separate numbers, as in PyTorch; OneFlow raises an error.",
        "api_behaviour",
        ("new_methods",),
    ),
    SnippetDifference("copy_", "copy_ returns the tensor, as in PyTorch.", "api_behaviour", ("copy_",)),
    SnippetDifference(
        "eye", "eye accepts any sbp; OneFlow accepts only broadcast.", "api_behaviour_2", ("create_eye_S0",)
    ),
    SnippetDifference(
        "device of a global tensor",
        "If x is a global tensor, x.device contains its placement: a tensor created with device=x.device is global on "
        "this placement, as broadcast. Programs that create constants on the device of their inputs therefore work "
        "with global tensors. OneFlow raises an error.",
        "errors",
        ("global_device_attr",),
    ),
    SnippetDifference(
        "0-d",
        "The local part of a 0-d tensor is 0-d; in OneFlow, it has one dim.",
        "api_behaviour_2",
        ("loss_to_local_P",),
    ),
    SnippetDifference(
        "strides",
        "The strides of a global tensor are those of its logical shape; in OneFlow, they are those of the local part.",
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
        "All arithmetic operators combine a partial_sum with a number. OneFlow does not implement some of them and "
        "raises an error.",
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
        "DistributedDataParallel calls a global module unchanged, because the module's layouts determine the "
        "reductions. OneFlow raises an error.",
        "errors",
        ("ddp_global",),
    ),
    SnippetDifference(
        "grad_sbp is checked",
        "A grad_sbp that does not fit the placement raises an error immediately; OneFlow raises it in a later "
        "backward.",
        "errors",
        ("grad_sbp_wrong_len",),
        "raises",
    ),
    SnippetDifference(
        "grad of another kind",
        "The grad of a global tensor must be global; OneFlow accepts a local grad and fails later.",
        "errors",
        ("assign_grad_local",),
        "raises",
    ),
    SnippetDifference(
        "one rank",
        "On one rank, all layouts are equivalent. If one input is split and the other is broadcast, OneFlow returns a "
        "broadcast tensor, and sbpjax a split one.",
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
