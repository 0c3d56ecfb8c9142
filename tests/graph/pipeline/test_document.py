"""docs/how_to/pipeline.md is true: its session prints what it says."""

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "how_to" / "pipeline.md"


def test_session():
    source = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL))
    session = doctest.DocTestParser().get_doctest(source, {}, "pipeline", str(PAGE), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    report = []
    runner.run(session, out=report.append)
    assert runner.tries > 10
    assert runner.failures == 0, "".join(report)
