"""PyTorch's places of its layers, for code that imports from `nn.modules`; `sbpjax.nn` itself holds them."""

from . import activation as activation
from . import adaptive as adaptive
from . import batchnorm as batchnorm
from . import batchnorm_fused as batchnorm_fused
from . import channelshuffle as channelshuffle
from . import container as container
from . import conv as conv
from . import distance as distance
from . import dropout as dropout
from . import fake_quantization as fake_quantization
from . import flatten as flatten
from . import fold as fold
from . import instancenorm as instancenorm
from . import lazy as lazy
from . import linear as linear
from . import loss as loss
from . import min_max_observer as min_max_observer
from . import module as module
from . import moving_average_min_max_observer as moving_average_min_max_observer
from . import normalization as normalization
from . import padding as padding
from . import pixelshuffle as pixelshuffle
from . import pooling as pooling
from . import quantization as quantization
from . import rnn as rnn
from . import sparse as sparse
from . import transformer as transformer
from . import upsampling as upsampling
from . import utils as utils
from .module import Module as Module


def __getattr__(name: str):
    from sbpjax import nn

    return getattr(nn, name)
