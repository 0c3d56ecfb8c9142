"""Options out of their range are errors before a step."""

import pytest

from sbpjax import optim
from tests.optim.test_optimizer import make


@pytest.mark.parametrize(
    ("make_optimizer", "error", "text"),
    [
        (lambda p: optim.SGD(p, lr=-1.0), ValueError, "Invalid learning rate: -1.0"),
        (lambda p: optim.SGD(p, lr=0.1, momentum=-0.5), ValueError, "Invalid momentum"),
        (lambda p: optim.Adam(p, lr=float("nan")), ValueError, "Invalid learning rate"),
        (lambda p: optim.Adam(p, betas=(0.9, 1.0)), ValueError, "Invalid beta parameter at index 1"),
        (lambda p: optim.Adam(p, eps=-1e-8), ValueError, "Invalid epsilon"),
    ],
)
def test_bad_options(make_optimizer, error, text):
    with pytest.raises(error, match=text):
        make_optimizer(make(None))
