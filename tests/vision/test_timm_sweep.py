"""timm's own files run under the alias of torch with the logits and gradients of PyTorch."""

import random

import pytest

from tests.vision import timm_sweep

# timm keeps a tiny member of many families for tests.
TINY = """test_byobnet test_convnext test_convnext2 test_efficientnet test_efficientnet_gn test_efficientnet_ln
    test_mambaout test_nfnet test_resnet test_vit test_vit2 test_vit3 test_vit4""".split()
DRAWN = random.Random(23).sample(TINY, 3)


@pytest.mark.filterwarnings("ignore")  # other packages' own
@pytest.mark.parametrize("name", [n if n in DRAWN else pytest.param(n, marks=pytest.mark.exhaustive) for n in TINY])
def test_a_tiny_model_of_a_family(name):
    found = timm_sweep.run(name)
    assert timm_sweep.is_right(found), found


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore")  # other packages' own
def test_all_models():
    """Goes on where an earlier run stopped: `build/timm_sweep.jsonl`."""
    known = timm_sweep.go_on(minutes=24 * 60)
    ran = [found for found in known.values() if "skipped" not in found]
    assert sum(map(timm_sweep.is_right, ran)) >= 0.97 * len(ran), timm_sweep.report(known)
