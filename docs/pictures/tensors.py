"""Draw the pictures of the tutorial on global tensors: `flow.visualize` of the tensors that its session makes.

``python docs/pictures/tensors.py`` writes them beside this file.
"""

import doctest
import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "tutorials" / "pictures.md"


def session(page: Path) -> dict:
    """Run the session of a page and return its names."""
    names: dict = {}
    code = "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL))
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE, verbose=False)
    test = doctest.DocTestParser().get_doctest(code, names, page.stem, str(page), 0)
    runner.run(test, clear_globs=False)
    return test.globs


def pictures() -> dict[str, str]:
    """Return the SVG of each picture that the page shows, by its name: that of the variable."""
    import sbpjax as flow

    shown = re.findall(r"\]\(\.\./pictures/(\w+)\.svg\)", PAGE.read_text())
    names = session(PAGE)
    return {name: flow.visualize(names[name]).svg() + "\n" for name in shown}


if __name__ == "__main__":
    for name, svg in pictures().items():
        (HERE / f"{name}.svg").write_text(svg)
