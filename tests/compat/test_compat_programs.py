"""Short programs in OneFlow's style show here what they showed on OneFlow 0.9 (`tests/compat_programs`)."""

import json
import zlib

import pytest

from tests.compat_programs import compare, differences, here, record

PROGRAMS = record.programs()
EXPECTED = dict(json.loads(line) for line in record.EXPECTED.read_text().splitlines())
OF_EACH = 3  # one in so many runs always, all of them in the exhaustive tests


def _case(name):
    always = zlib.crc32(name.encode()) % OF_EACH == 0
    return pytest.param(name, marks=() if always else pytest.mark.exhaustive)


@pytest.mark.filterwarnings("default")  # scripts may do what warns
@pytest.mark.parametrize("name", [_case(name) for name in PROGRAMS])
def test_program(name):
    lines, reason = differences.DIFFERENT.get(name, ((), ""))
    if lines is None:
        with pytest.raises(TypeError):
            here.run(name, PROGRAMS[name])
        return
    found = compare.differences(EXPECTED[name], here.run(name, PROGRAMS[name]))
    unlisted = [text for label, text in found if label not in lines]
    assert not unlisted, "\n".join(unlisted)
    assert {label for label, _ in found} == set(lines), f"equal now, so no longer a difference: {reason}"


def test_every_program_is_recorded_and_shows_something():
    assert PROGRAMS.keys() == EXPECTED.keys()
    assert len(PROGRAMS) >= 300
    assert all(all(lines) for lines in EXPECTED.values())
    assert differences.DIFFERENT.keys() <= PROGRAMS.keys()


def test_a_number_that_differs_is_seen():
    one = {"tensor": [1.0, 2.0], "shape": [2], "dtype": "float32"}
    near, far = {**one, "tensor": [1.0, 2.0001]}, {**one, "tensor": [1.0, 2.01]}
    assert not compare.differences([[["x", one]]], [[["x", near]]])
    for other in (far, {**one, "dtype": "float64"}, {**one, "shape": [2, 1]}, [1.0, 2.0]):
        assert compare.differences([[["x", one]]], [[["x", other]]])
    assert compare.differences([[["x", one]]], [[]])
    assert compare.differences([[["x", True]]], [[["x", 1]]])
