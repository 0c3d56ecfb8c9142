"""Airy's function against SciPy's, where PyTorch's is off by 3e-6 (between -2.1 and -2)."""

import numpy as np
import scipy.special

import sbpjax


def test_values_are_scipys():
    x = np.linspace(-12, 12, 481)
    ours = sbpjax.special.airy_ai(sbpjax.tensor(x, dtype=sbpjax.float64)).numpy()
    np.testing.assert_allclose(ours, scipy.special.airy(x)[0], rtol=1e-9, atol=1e-12)
