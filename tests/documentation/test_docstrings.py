"""The names that programs use most are explained in full; the examples of their docstrings run and print what they say.

The list: names of OneFlow that LiBai, flowvision and OneFlow's own tests call most, then those that programs written
for PyTorch use most. A name stands once, with the room where it is mostly called; methods and functions of one name
share their text. Forms that write in place, and aliases, have the text of their op and are not counted.
"""

import doctest
import inspect
import re

import pytest

import sbpjax as flow

NAMES = {
    "": """
        abs add addcdiv addcmul addmm all allclose amax amin any arange argmax argmin argsort as_tensor baddbmm
        bernoulli bincount bmm cat ceil clamp clone cos count_nonzero cumprod cumsum diag div dot einsum empty eq
        equal erf exp eye flip floor floor_divide fmod from_numpy full full_like gather ge gt hstack index_add
        index_select isfinite isinf isnan le lerp linspace log log1p log2 logical_and logical_not logical_or logsumexp
        lt masked_fill masked_select matmul max maximum mean meshgrid min minimum mm movedim mul multinomial mv ne neg
        nonzero norm normal numel ones ones_like outer pow prod quantile rand randint randn randperm reciprocal
        remainder repeat_interleave roll round rsqrt scatter scatter_add sigmoid sign sin softmax sort sqrt square
        stack std sub sum take_along_dim tanh tensor tile topk tril triu unique var vstack where zeros zeros_like
    """,
    "Tensor": """
        backward chunk contiguous copy_ cpu detach expand expand_as fill_ flatten item narrow normal_ numpy permute
        repeat requires_grad_ reshape size split squeeze t to to_global to_local tolist transpose type_as unbind
        uniform_ unsqueeze view zero_
    """,
    "nn": """
        AdaptiveAvgPool2d AvgPool2d BatchNorm1d BatchNorm2d BCELoss BCEWithLogitsLoss Conv1d Conv2d ConvTranspose2d
        CrossEntropyLoss Dropout Embedding Flatten GELU GLU GroupNorm GRU Hardsigmoid Hardswish Identity
        InstanceNorm2d KLDivLoss L1Loss LayerNorm LeakyReLU Linear LogSoftmax LSTM MaxPool2d Module ModuleDict
        ModuleList MSELoss MultiheadAttention NLLLoss Parameter PixelShuffle PReLU ReflectionPad2d ReLU ReLU6 RMSNorm
        Sequential Sigmoid SiLU SmoothL1Loss Softmax Softplus Tanh TransformerEncoderLayer Upsample ZeroPad2d
    """,
    "nn.functional": """
        adaptive_avg_pool2d avg_pool2d batch_norm binary_cross_entropy binary_cross_entropy_with_logits conv1d conv2d
        conv3d conv_transpose2d cosine_similarity cross_entropy dropout elu embedding fold gelu glu grid_sample
        group_norm hardsigmoid hardswish hardtanh interpolate kl_div l1_loss layer_norm leaky_relu linear log_softmax
        logsigmoid max_pool1d max_pool2d mish mse_loss nll_loss normalize one_hot pad pixel_shuffle prelu relu relu6
        scaled_dot_product_attention selu sigmoid silu smooth_l1_loss softmax softplus unfold
    """,
}
# Which hold others: no tensor comes in or out.
WITHOUT_LAYOUT = {"nn.Module", "nn.ModuleDict", "nn.ModuleList", "nn.Parameter", "nn.Sequential"}
PATHS = [f"{namespace}.{name}".lstrip(".") for namespace, names in NAMES.items() for name in names.split()]
LAYOUT_WORDS = re.compile(r"\bsplits?\b|\bsbp\b|\bbroadcast\b|\blayout\b|partial sum|partial_sum", re.IGNORECASE)


def found(path):
    value = flow
    for part in path.split("."):
        value = getattr(value, part)
    return value


@pytest.fixture(scope="module")
def texts():
    return {path: inspect.getdoc(found(path)) or "" for path in PATHS}


def section(text, title):
    """Return a section of a docstring, '' if it has none."""
    given = re.search(rf"^{title}:\n((?:    .*\n?|\n)*)", text, flags=re.MULTILINE)
    return given[1] if given else ""


def test_the_list():
    assert len(PATHS) == len(set(PATHS))


def test_every_argument_is_explained(texts):
    missing = {}
    for path, text in texts.items():
        parameters = inspect.signature(found(path)).parameters
        documented = set(re.findall(r"^    \*{0,2}(\w+):", section(text, "Args"), flags=re.MULTILINE))
        if lost := [p for p in parameters if p not in documented and p != "self"]:
            missing[path] = lost
    assert missing == {}


def test_every_layout_is_explained(texts):
    mentioned = {path for path, text in texts.items() if LAYOUT_WORDS.search(text.partition("\nExample:")[0])}
    assert set(PATHS) - mentioned == WITHOUT_LAYOUT


def test_what_raises_says_so(texts):
    """An op with a `raise` or `fail` of its own has a section on errors, and the classes that it names exist."""
    lost = []
    for path, text in texts.items():
        raises, value = section(text, "Raises"), found(path)
        if not raises and not inspect.isclass(value) and re.search(r"\braise\b|\bfail\(", source(value)):
            lost.append(path)
        for name in re.findall(r"^    (\w+):", raises, flags=re.MULTILINE):
            assert issubclass(getattr(flow.errors, name, None) or vars(__builtins__)[name], Exception), path
    assert lost == []


def source(function):
    """Return the code of a function that is written by hand, '' of one derived from the table."""
    try:
        return inspect.getsource(inspect.unwrap(function))
    except (OSError, TypeError):
        return ""


def test_every_name_has_an_example_that_uses_it(texts):
    lost = [path for path, text in texts.items() if path.rpartition(".")[2] not in section(text, "Example")]
    assert lost == []


def test_examples_print_what_they_say(texts):
    """All examples run in one process, which takes the fewest compilations."""
    parser, report, tries = doctest.DocTestParser(), [], 0
    for path, text in texts.items():
        flow.manual_seed(0)
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE, verbose=False)
        example = parser.get_doctest(section(text, "Example"), {"flow": flow}, path, None, 0)
        runner.run(example, out=report.append)
        tries += runner.tries
    assert report == [] and tries >= len(PATHS), "".join(report)
