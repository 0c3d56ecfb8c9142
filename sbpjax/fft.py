"""Discrete Fourier transforms: the names of ``torch.fft``."""

from sbpjax.functions.fft import fft as fft
from sbpjax.functions.fft import fft2 as fft2
from sbpjax.functions.fft import fftfreq as fftfreq
from sbpjax.functions.fft import fftn as fftn
from sbpjax.functions.fft import fftshift as fftshift
from sbpjax.functions.fft import hfft as hfft
from sbpjax.functions.fft import hfft2 as hfft2
from sbpjax.functions.fft import hfftn as hfftn
from sbpjax.functions.fft import ifft as ifft
from sbpjax.functions.fft import ifft2 as ifft2
from sbpjax.functions.fft import ifftn as ifftn
from sbpjax.functions.fft import ifftshift as ifftshift
from sbpjax.functions.fft import ihfft as ihfft
from sbpjax.functions.fft import ihfft2 as ihfft2
from sbpjax.functions.fft import ihfftn as ihfftn
from sbpjax.functions.fft import irfft as irfft
from sbpjax.functions.fft import irfft2 as irfft2
from sbpjax.functions.fft import irfftn as irfftn
from sbpjax.functions.fft import rfft as rfft
from sbpjax.functions.fft import rfft2 as rfft2
from sbpjax.functions.fft import rfftfreq as rfftfreq
from sbpjax.functions.fft import rfftn as rfftn
