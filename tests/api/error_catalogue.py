"""Write `docs/reference/errors.md`: every error class with its help page, and the errors of common mistakes.

python -m tests.api.error_catalogue

The texts of mistakes are those that the mistakes raise while the page is written.
"""

from __future__ import annotations

import inspect
import os
import re
import textwrap
from pathlib import Path

os.environ.setdefault("SBPJAX_CPU_DEVICES", "8")

import sbpjax as flow
from sbpjax import errors

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "errors.md"
HEAD = """# Errors

Every error that sbpjax raises for a user's mistake is a `sbpjax.errors.SbpjaxError`. It is also a subclass of the
error that PyTorch or Python raises for such a mistake, so `except RuntimeError` keeps working. The text has four parts:
the operation, with the line of your code; its inputs as *seen*; the broken *rule*; and one line that *fixes* the
mistake. The traceback shows your frames; `SBPJAX_FULL_TRACEBACK=1` also shows the library's.

For some mistakes, the rule quotes OneFlow's message unchanged, because programs may compare it.

`make api` generates this page from the classes.
"""
TENSORS = """
p = flow.placement("cpu", [0, 1, 2, 3])
x = flow.randn(8, 6, placement=p, sbp=flow.sbp.split(0))
"""
MISTAKES = {
    "Shapes that do not match": "flow.ones(2, 3) @ flow.ones(2, 3)",
    "A wrong type": 'flow.ones(2).sum(dim="rows")',
    "A dim that does not exist": "flow.ones(2, 3).sum(dim=2)",
    "A local and a global tensor in one op": "x + flow.ones(8, 6)",
    "Tensors on two placements": 'x + flow.ones(8, 6, placement=flow.placement("cpu", [4, 5]), sbp=flow.sbp.broadcast)',
    "An sbp that does not fit the placement": "x.to_global(sbp=[flow.sbp.split(0), flow.sbp.broadcast])",
    "A split of a dim that does not exist": "x.to_global(sbp=flow.sbp.split(2))",
    "More ranks than devices": 'flow.placement("cpu", list(range(64)))',
    "A name that does not exist": "flow.soft_max",
    "An old OneFlow name": "flow.get_variable",
    "A wrong argument": "flow.nn.Linear(2, 3, biases=True)",
    "Backward twice": "y = flow.ones(2).requires_grad_().exp().sum(); y.backward(); y.backward()",
    "Writing to a leaf": "w = flow.ones(2).requires_grad_(); w.add_(1)",
    "A value inside a compiled program": "flow.compile(lambda x: x if x.sum() > 0 else -x)(flow.ones(2))",
    "Weights with a different shape": "flow.nn.Linear(2, 3).load_state_dict(flow.nn.Linear(2, 4).state_dict())",
    "An option outside its range": "flow.nn.Graph().config.set_gradient_accumulation_steps(0)",
}


def text_of(mistake: str) -> str:
    """Return the class and the text that a mistake ends in, without files and lines."""
    space: dict = {"flow": flow}
    exec(TENSORS, space)
    try:
        exec(compile(mistake, "train.py", "exec"), space)
    except errors.SbpjaxError as error:
        text = re.sub(r"\S*docs/(\w+/\w+\.md)", r"docs/\1", str(error))
        return f"{type(error).__name__}: {text}"
    raise AssertionError(f"no error: {mistake}")


def classes() -> list[type]:
    """Return the error classes, those first that others are kinds of."""
    found = [c for c in vars(errors).values() if inspect.isclass(c) and issubclass(c, (errors.SbpjaxError, Warning))]
    return [c for c in found if c.__module__ == errors.__name__]


def page() -> str:
    """Return the page."""
    about_x = "`x` is a global tensor of shape (8, 6) with sbp `split(0)` on four ranks."
    lines = [HEAD, "## Common mistakes", "", about_x, ""]
    for about, mistake in MISTAKES.items():
        shown = textwrap.indent("\n".join([*mistake.split("; "), text_of(mistake)]), "    ")
        lines += [f"### {about}", "", shown, ""]
    lines += ["## Classes", ""]
    for each in classes():
        kinds = [f"`{base.__name__}`" for base in each.__mro__ if base.__module__ == "builtins"]
        kinds = kinds[: kinds.index("`Exception`")]
        also = " and ".join(filter(None, [", ".join(kinds[:-1]), *kinds[-1:]]))
        lines += [f"### {each.__name__}", "", *([f"Also {also}.", ""] if kinds else [])]
        body = inspect.getdoc(each).partition("\n\nArgs:")[0]
        lines += [re.sub(r"``([^`]*)``", r"`\1`", body), ""]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
