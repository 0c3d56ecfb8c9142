"""Complex tensors: parts are views that write through, conjugates are lazy as far as scripts can tell; windows."""

import numpy as np
import pytest
import torch

import sbpjax

Z = np.array([[1 + 2j, -0.5 + 0.3j], [3j, 1 + 0j]], np.complex64)


@pytest.mark.parametrize("torch_like", [sbpjax, torch], ids=["sbpjax", "torch"])
def test_views_write_through(torch_like):
    m = torch_like
    z = m.tensor(Z)
    z.real[0] = 7.0
    z.imag.mul_(2)
    m.view_as_real(z)[1, 1, 1] = -1.0
    z.conj()[0, 0] = 1 - 5j
    pairs = m.tensor(np.arange(4, dtype=np.float32).reshape(2, 2))
    m.view_as_complex(pairs)[1] = 9 + 8j
    assert z.tolist() == [[1 + 5j, pytest.approx(7 + 0.6j)], [6j, 1 - 1j]]
    assert pairs.tolist() == [[0, 1], [9, 8]]
    assert z.conj().is_conj() and not z.conj().conj().is_conj() and not z.conj().resolve_conj().is_conj()
    assert z.real.stride() == (4, 2) and m.view_as_real(z).stride() == (4, 2, 1)
    z.real = m.zeros(2, 2)
    assert z.real.sum() == 0 and z.is_complex() and not m.is_complex(z.real)


def test_gradients():
    def loss(m):
        z = m.tensor(Z, requires_grad=True)
        m.view_as_real(z * z.conj()).square().sum().backward()
        return z.grad.numpy()

    np.testing.assert_allclose(loss(sbpjax), loss(torch), rtol=1e-5)


def test_promotion():
    for other in (2, 1.5, 1j, np.float64(2)):
        ours, theirs = sbpjax.ones(2, dtype=sbpjax.complex64) * other, torch.ones(2, dtype=torch.complex64) * other
        assert str(ours.dtype)[7:] == str(theirs.dtype)[6:]
    x = sbpjax.ones(2) * 1j
    assert x.dtype == sbpjax.complex64 and (sbpjax.ones(2, dtype=sbpjax.float64) * x).dtype == sbpjax.complex128


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
@pytest.mark.parametrize("periodic", [True, False])
def test_windows(name, periodic):
    for length in (0, 1, 2, 7):
        got = getattr(sbpjax, f"{name}_window")(length, periodic)
        want = getattr(torch, f"{name}_window")(length, periodic)
        np.testing.assert_allclose(got.numpy(), want.numpy(), atol=1e-6)


def test_stft_round_trip_and_frequencies():
    x = sbpjax.randn(2, 40)
    window = sbpjax.hann_window(8)
    there = sbpjax.stft(x, 8, 2, window=window, return_complex=True)
    np.testing.assert_allclose(there.istft(8, 2, window=window, length=40).numpy(), x.numpy(), atol=1e-5)
    assert x.stft(8, window=window, return_complex=False).shape == (2, 5, 21, 2)
    with pytest.raises(RuntimeError, match="return_complex"):
        sbpjax.stft(x, 8)
    np.testing.assert_allclose(sbpjax.fft.fftfreq(5, 0.5).numpy(), torch.fft.fftfreq(5, 0.5).numpy())
    np.testing.assert_allclose(sbpjax.fft.rfft(x, dim=0).numpy(), np.fft.rfft(x.numpy(), axis=0), atol=1e-5)
