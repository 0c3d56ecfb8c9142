"""The prose names things: words that stand for a clause about a thing stay rare.

Each rate may only fall: lower its ceiling when it does. ``python -m tests.support.words --lines`` shows the places.
"""

from tests.support.words import prose_of, rates

CEILINGS = {"what": 0.65, "tell": 0.05, "lie": 0.15, "ask": 0.1}  # per 1,000 words


def test_rates_stay_below_their_ceilings():
    found = rates()
    risen = {group: round(rate, 3) for group, rate in found.items() if rate > CEILINGS[group]}
    assert not risen, f"name the thing instead; per 1,000 words {risen}, at most {CEILINGS}"


def test_prose_leaves_out_code_and_argument_names(tmp_path):
    source = tmp_path / "a.py"
    source.write_text(
        '''def ask(what):
    """Return `what` of a tensor.

        >>> ask("what")

    Args:
        what: the name of a field.
    """
    return say(what)  # the field may lie elsewhere
'''
    )
    words = " ".join(prose_of(source)).split()
    assert words == "Return of a tensor. Args: the name of a field. the field may lie elsewhere".split()
    page = tmp_path / "a.md"
    page.write_text("One.\n\n```python\nask()\n```\n\nTwo `lies`.\n")
    assert " ".join(prose_of(page)).split() == ["One.", "Two", "."]
