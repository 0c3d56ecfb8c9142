"""Values from the command line."""

import pytest
from omegaconf import OmegaConf

from sbpjax.errors import ConfigError
from sbpjax.train.config import LazyCall, instantiate, override


def config():
    box = LazyCall(sorted)(LazyCall(list)(), key=None)
    return OmegaConf.create({"a": {"rate": 1e-3, "steps": 5, "name": "x", "on": True, "sizes": [1, 2]}, "box": box})


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("a.rate=2e-4", 2e-4),
        ("a.rate=1", 1.0),
        ("a.steps=7", 7),
        ("a.name=run=7", "run=7"),
        ("a.name=null", None),
        ("a.on=false", False),
        ("a.sizes=[3]", [3]),
        ("a.sizes.1=9", [1, 9]),
        ("a.steps=${a.sizes.0}", 1),
    ],
)
def test_values(change, value):
    before = config()
    after = override(before, [change])
    name = change.partition("=")[0].removesuffix(".1")
    assert OmegaConf.select(after, name) == value and before == config()
    assert type(OmegaConf.select(after, name)) is type(value) or isinstance(value, list)


def test_an_argument_that_the_file_does_not_give():
    after = override(config(), ["box.reverse=true", "box.key.inner=1"])
    assert after.box.reverse is True and after.box.key == {"inner": 1}
    assert instantiate(override(config(), ["box.reverse=true"]).box) == []


@pytest.mark.parametrize(
    ("change", "seen", "fix"),
    [
        ("a.steps", "no value", "trainer.max_steps=100"),
        ("=3", "no name", "trainer.max_steps=100"),
        ("a.setps=3", "no 'setps' in a", "a.steps=3"),
        ("b.steps=3", "no 'b'", "one of these"),
        ("boxx.key=3", "no 'boxx'", "box.key=3"),
        ("box.revers=true", "no 'revers' in box", "box.reverse=true"),
        ("a.steps=many", "'many' for 5", "a.steps=5"),
        ("a.sizes.2=1", "'2' in a.sizes", "a.sizes.0=…"),
        ("a.steps.b=1", "a.steps is 5", "a.steps=…"),
        ("box=3", "3 for {", "box={…}"),
        ("a.name=[1", "while parsing", "put quotes around a text"),
        ("box._call_=x", "no '_call_'", "one of these"),
    ],
)
def test_wrong_ones_are_told(change, seen, fix):
    with pytest.raises(ConfigError) as error:
        override(config(), [change])
    lines = str(error.value).splitlines()
    assert lines[0].startswith(f"override {change!r}") and f"seen: {seen}" in lines[1] and lines[3] == f"  fix:  {fix}"


def test_a_dict_that_an_override_makes_takes_several_names():
    config = OmegaConf.create({"trainer": {"options": None, "steps": 2}})
    changed = override(config, ["trainer.options.zero=3", "trainer.options.amp=bfloat16"])
    assert changed.trainer.options == {"zero": 3, "amp": "bfloat16"}
    with pytest.raises(ConfigError, match=r"(?s)no 'steps'.*fix:  trainer\.steps=4"):
        override(config, ["steps=4"])
