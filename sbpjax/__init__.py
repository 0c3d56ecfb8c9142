"""sbpjax: OneFlow's global tensors on JAX.

    import sbpjax as flow
    p = flow.placement("cpu", [0, 1, 2, 3])
    x = flow.randn(8, 4, placement=p, sbp=flow.sbp.split(0))

The public names, by the module that defines them. Importing sbpjax touches no device.
"""

from ._pause import Pause as _Pause  # isort: skip  # first of all

_resting = _Pause()

from . import _config as _config  # isort: skip  # first: it configures JAX
from .autograd import enable_grad as enable_grad
from .autograd import inference_mode as inference_mode
from .autograd import is_grad_enabled as is_grad_enabled
from .autograd import is_inference_mode_enabled as is_inference_mode_enabled
from .autograd import no_grad as no_grad
from .autograd import set_grad_enabled as set_grad_enabled
from .autograd.cond import cond as cond
from .sbp.placement import placement as placement
from .sbp.policy import boxing_policy as boxing_policy
from .tensor.abstract import abstract as abstract
from .tensor.creation import arange as arange
from .tensor.creation import empty as empty
from .tensor.creation import eye as eye
from .tensor.creation import full as full
from .tensor.creation import linspace as linspace
from .tensor.creation import logspace as logspace
from .tensor.creation import ones as ones
from .tensor.creation import zeros as zeros
from .tensor.device import device as device
from .tensor.dtype import bfloat16 as bfloat16
from .tensor.dtype import bool_ as bool  # noqa: F401
from .tensor.dtype import byte as byte
from .tensor.dtype import cdouble as cdouble
from .tensor.dtype import cfloat as cfloat
from .tensor.dtype import char as char
from .tensor.dtype import complex64 as complex64
from .tensor.dtype import complex128 as complex128
from .tensor.dtype import double as double
from .tensor.dtype import dtype as dtype
from .tensor.dtype import finfo as finfo
from .tensor.dtype import float8_e4m3fn as float8_e4m3fn
from .tensor.dtype import float8_e5m2 as float8_e5m2
from .tensor.dtype import float16 as float16
from .tensor.dtype import float32 as float32
from .tensor.dtype import float64 as float64
from .tensor.dtype import float_ as float  # noqa: F401
from .tensor.dtype import get_default_dtype as get_default_dtype
from .tensor.dtype import half as half
from .tensor.dtype import iinfo as iinfo
from .tensor.dtype import int8 as int8
from .tensor.dtype import int16 as int16
from .tensor.dtype import int32 as int32
from .tensor.dtype import int64 as int64
from .tensor.dtype import int_ as int  # noqa: F401
from .tensor.dtype import long as long
from .tensor.dtype import set_default_dtype as set_default_dtype
from .tensor.dtype import short as short
from .tensor.dtype import uint8 as uint8
from .tensor.dtype import uint16 as uint16
from .tensor.dtype import uint32 as uint32
from .tensor.dtype import uint64 as uint64
from .tensor.from_data import as_tensor as as_tensor
from .tensor.from_data import from_jax as from_jax
from .tensor.from_data import from_numpy as from_numpy
from .tensor.from_data import tensor as tensor
from .tensor.generator import Generator as Generator
from .tensor.generator import default_generator as default_generator
from .tensor.generator import fork_rng as fork_rng
from .tensor.generator import get_rng_state as get_rng_state
from .tensor.generator import initial_seed as initial_seed
from .tensor.generator import manual_seed as manual_seed
from .tensor.generator import seed as seed
from .tensor.generator import set_rng_state as set_rng_state
from .tensor.like import empty_like as empty_like
from .tensor.like import full_like as full_like
from .tensor.like import ones_like as ones_like
from .tensor.like import zeros_like as zeros_like
from .tensor.ordering import argsort as argsort
from .tensor.ordering import cummax as cummax
from .tensor.ordering import cummin as cummin
from .tensor.ordering import cumprod as cumprod
from .tensor.ordering import cumsum as cumsum
from .tensor.ordering import diff as diff
from .tensor.ordering import isin as isin
from .tensor.ordering import kthvalue as kthvalue
from .tensor.ordering import logcumsumexp as logcumsumexp
from .tensor.ordering import median as median
from .tensor.ordering import mode as mode
from .tensor.ordering import msort as msort
from .tensor.ordering import nanmedian as nanmedian
from .tensor.ordering import quantile as quantile
from .tensor.ordering import sort as sort
from .tensor.ordering import topk as topk
from .tensor.printing import set_printoptions as set_printoptions
from .tensor.random import bernoulli as bernoulli
from .tensor.random import multinomial as multinomial
from .tensor.random import normal as normal
from .tensor.random import poisson as poisson
from .tensor.random import rand as rand
from .tensor.random import rand_like as rand_like
from .tensor.random import randint as randint
from .tensor.random import randint_like as randint_like
from .tensor.random import randn as randn
from .tensor.random import randn_like as randn_like
from .tensor.random import randperm as randperm
from .tensor.reductions import all as all
from .tensor.reductions import amax as amax
from .tensor.reductions import amin as amin
from .tensor.reductions import aminmax as aminmax
from .tensor.reductions import any as any
from .tensor.reductions import argmax as argmax
from .tensor.reductions import argmin as argmin
from .tensor.reductions import count_nonzero as count_nonzero
from .tensor.reductions import logsumexp as logsumexp
from .tensor.reductions import max as max
from .tensor.reductions import mean as mean
from .tensor.reductions import min as min
from .tensor.reductions import nanmean as nanmean
from .tensor.reductions import nansum as nansum
from .tensor.reductions import norm as norm
from .tensor.reductions import prod as prod
from .tensor.reductions import std as std
from .tensor.reductions import std_mean as std_mean
from .tensor.reductions import sum as sum
from .tensor.reductions import var as var
from .tensor.reductions import var_mean as var_mean
from .tensor.selection import argwhere as argwhere
from .tensor.selection import bincount as bincount
from .tensor.selection import bucketize as bucketize
from .tensor.selection import gather as gather
from .tensor.selection import gather_nd as gather_nd
from .tensor.selection import histc as histc
from .tensor.selection import index_add as index_add
from .tensor.selection import index_copy as index_copy
from .tensor.selection import index_fill as index_fill
from .tensor.selection import index_select as index_select
from .tensor.selection import masked_fill as masked_fill
from .tensor.selection import masked_scatter as masked_scatter
from .tensor.selection import masked_select as masked_select
from .tensor.selection import nonzero as nonzero
from .tensor.selection import scatter as scatter
from .tensor.selection import scatter_add as scatter_add
from .tensor.selection import scatter_nd as scatter_nd
from .tensor.selection import scatter_reduce as scatter_reduce
from .tensor.selection import searchsorted as searchsorted
from .tensor.selection import take as take
from .tensor.selection import take_along_dim as take_along_dim
from .tensor.selection import tensor_scatter_nd_update as tensor_scatter_nd_update
from .tensor.selection import unique as unique
from .tensor.selection import unique_consecutive as unique_consecutive
from .tensor.size import Size as Size
from .tensor.splitting import chunk as chunk
from .tensor.splitting import split as split
from .tensor.splitting import tensor_split as tensor_split
from .tensor.splitting import unbind as unbind
from .tensor.tensor import Tensor as Tensor
from .tensor.typed import BFloat16Tensor as BFloat16Tensor
from .tensor.typed import BoolTensor as BoolTensor
from .tensor.typed import ByteTensor as ByteTensor
from .tensor.typed import CharTensor as CharTensor
from .tensor.typed import DoubleTensor as DoubleTensor
from .tensor.typed import FloatTensor as FloatTensor
from .tensor.typed import HalfTensor as HalfTensor
from .tensor.typed import IntTensor as IntTensor
from .tensor.typed import LongTensor as LongTensor
from .tensor.typed import ShortTensor as ShortTensor
from .tensor.views import broadcast_to as broadcast_to
from .tensor.views import diagonal as diagonal
from .tensor.views import expand as expand
from .tensor.views import flatten as flatten
from .tensor.views import movedim as moveaxis  # noqa: F401
from .tensor.views import movedim as movedim
from .tensor.views import narrow as narrow
from .tensor.views import permute as permute
from .tensor.views import ravel as ravel
from .tensor.views import reshape as reshape
from .tensor.views import select as select
from .tensor.views import squeeze as squeeze
from .tensor.views import t as t
from .tensor.views import transpose as swapaxes  # noqa: F401
from .tensor.views import transpose as swapdims  # noqa: F401
from .tensor.views import transpose as transpose
from .tensor.views import unflatten as unflatten
from .tensor.views import unsqueeze as unsqueeze
from .tensor.views import view as view

# Rooms that build on the names above.
from . import _C as _C  # isort: skip
from . import amp as amp  # isort: skip
from .amp import autocast as autocast  # isort: skip
from .amp import get_autocast_dtype as get_autocast_dtype  # isort: skip
from .amp import is_autocast_enabled as is_autocast_enabled  # isort: skip
from . import autograd as autograd  # isort: skip
from . import env as env  # isort: skip
from . import errors as errors  # isort: skip
from . import graph as graph  # isort: skip
from . import nn as nn  # isort: skip
from . import optim as optim  # isort: skip
from . import sbp as sbp  # isort: skip
from . import utils as utils  # isort: skip
from .utils.checkpoint import load as load  # isort: skip
from .utils.checkpoint import save as save  # isort: skip
from ._C import broadcast_like as broadcast_like  # isort: skip
from .graph import compile as compile  # isort: skip
from .graph import explain as explain  # isort: skip
from .graph import load_graph as load_graph  # isort: skip
from .graph import visualize as visualize  # isort: skip
from .naming import VERSION as __version__  # isort: skip  # noqa: F401
from ._lazy import attribute as __getattr__  # isort: skip  # noqa: F401
from ._lazy import names as __dir__  # isort: skip  # noqa: F401
from .tensor.wrong_call import tell as _tell  # isort: skip

_tell(globals())
_tell(Tensor)


del _resting, _tell
