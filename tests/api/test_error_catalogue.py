"""The page of errors is what the classes and the mistakes say."""

from tests.api import error_catalogue


def test_the_page_is_in_step():
    assert error_catalogue.PAGE.read_text() == error_catalogue.page(), "write it anew: make api"


def test_every_mistake_has_its_line_and_a_fix():
    names_alone = {"A name that does not exist"}  # Python's own text, with the nearest name
    for about in error_catalogue.MISTAKES.keys() - names_alone:
        text = error_catalogue.text_of(error_catalogue.MISTAKES[about])
        assert "(at train.py:1)" in text and "seen: " in text and "rule: " in text and "fix:  " in text, about
