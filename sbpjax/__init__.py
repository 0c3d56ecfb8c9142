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
from .tensor.functions import abs as abs
from .tensor.functions import absolute as absolute
from .tensor.functions import acos as acos
from .tensor.functions import acosh as acosh
from .tensor.functions import add as add
from .tensor.functions import addbmm as addbmm
from .tensor.functions import addcdiv as addcdiv
from .tensor.functions import addcmul as addcmul
from .tensor.functions import addmm as addmm
from .tensor.functions import addmv as addmv
from .tensor.functions import addr as addr
from .tensor.functions import allclose as allclose
from .tensor.functions import arccos as arccos
from .tensor.functions import arccosh as arccosh
from .tensor.functions import arcsin as arcsin
from .tensor.functions import arcsinh as arcsinh
from .tensor.functions import arctan as arctan
from .tensor.functions import arctan2 as arctan2
from .tensor.functions import arctanh as arctanh
from .tensor.functions import asin as asin
from .tensor.functions import asinh as asinh
from .tensor.functions import atan as atan
from .tensor.functions import atan2 as atan2
from .tensor.functions import atanh as atanh
from .tensor.functions import atleast_1d as atleast_1d
from .tensor.functions import atleast_2d as atleast_2d
from .tensor.functions import atleast_3d as atleast_3d
from .tensor.functions import baddbmm as baddbmm
from .tensor.functions import bitwise_and as bitwise_and
from .tensor.functions import bitwise_left_shift as bitwise_left_shift
from .tensor.functions import bitwise_not as bitwise_not
from .tensor.functions import bitwise_or as bitwise_or
from .tensor.functions import bitwise_right_shift as bitwise_right_shift
from .tensor.functions import bitwise_xor as bitwise_xor
from .tensor.functions import bmm as bmm
from .tensor.functions import broadcast_tensors as broadcast_tensors
from .tensor.functions import can_cast as can_cast
from .tensor.functions import cat as cat
from .tensor.functions import ceil as ceil
from .tensor.functions import celu as celu
from .tensor.functions import clamp as clamp
from .tensor.functions import clamp_max as clamp_max
from .tensor.functions import clamp_min as clamp_min
from .tensor.functions import clip as clip
from .tensor.functions import clone as clone
from .tensor.functions import column_stack as column_stack
from .tensor.functions import concat as concat
from .tensor.functions import concatenate as concatenate
from .tensor.functions import copysign as copysign
from .tensor.functions import cos as cos
from .tensor.functions import cosh as cosh
from .tensor.functions import cross as cross
from .tensor.functions import deg2rad as deg2rad
from .tensor.functions import diag as diag
from .tensor.functions import diag_embed as diag_embed
from .tensor.functions import digamma as digamma
from .tensor.functions import div as div
from .tensor.functions import divide as divide
from .tensor.functions import dot as dot
from .tensor.functions import dstack as dstack
from .tensor.functions import einsum as einsum
from .tensor.functions import eq as eq
from .tensor.functions import equal as equal
from .tensor.functions import erf as erf
from .tensor.functions import erfc as erfc
from .tensor.functions import erfinv as erfinv
from .tensor.functions import exp as exp
from .tensor.functions import exp2 as exp2
from .tensor.functions import expm1 as expm1
from .tensor.functions import flip as flip
from .tensor.functions import fliplr as fliplr
from .tensor.functions import flipud as flipud
from .tensor.functions import float_power as float_power
from .tensor.functions import floor as floor
from .tensor.functions import floor_divide as floor_divide
from .tensor.functions import fmax as fmax
from .tensor.functions import fmin as fmin
from .tensor.functions import fmod as fmod
from .tensor.functions import frac as frac
from .tensor.functions import ge as ge
from .tensor.functions import ger as ger
from .tensor.functions import greater as greater
from .tensor.functions import greater_equal as greater_equal
from .tensor.functions import gt as gt
from .tensor.functions import heaviside as heaviside
from .tensor.functions import hstack as hstack
from .tensor.functions import hypot as hypot
from .tensor.functions import inner as inner
from .tensor.functions import is_complex as is_complex
from .tensor.functions import is_floating_point as is_floating_point
from .tensor.functions import is_nonzero as is_nonzero
from .tensor.functions import is_tensor as is_tensor
from .tensor.functions import isclose as isclose
from .tensor.functions import isfinite as isfinite
from .tensor.functions import isinf as isinf
from .tensor.functions import isnan as isnan
from .tensor.functions import isneginf as isneginf
from .tensor.functions import isposinf as isposinf
from .tensor.functions import kron as kron
from .tensor.functions import le as le
from .tensor.functions import lerp as lerp
from .tensor.functions import less as less
from .tensor.functions import less_equal as less_equal
from .tensor.functions import lgamma as lgamma
from .tensor.functions import log as log
from .tensor.functions import log1p as log1p
from .tensor.functions import log2 as log2
from .tensor.functions import log10 as log10
from .tensor.functions import log_softmax as log_softmax
from .tensor.functions import logaddexp as logaddexp
from .tensor.functions import logical_and as logical_and
from .tensor.functions import logical_not as logical_not
from .tensor.functions import logical_or as logical_or
from .tensor.functions import logical_xor as logical_xor
from .tensor.functions import logit as logit
from .tensor.functions import lt as lt
from .tensor.functions import matmul as matmul
from .tensor.functions import maximum as maximum
from .tensor.functions import meshgrid as meshgrid
from .tensor.functions import minimum as minimum
from .tensor.functions import mm as mm
from .tensor.functions import mul as mul
from .tensor.functions import multiply as multiply
from .tensor.functions import mv as mv
from .tensor.functions import nan_to_num as nan_to_num
from .tensor.functions import ne as ne
from .tensor.functions import neg as neg
from .tensor.functions import negative as negative
from .tensor.functions import not_equal as not_equal
from .tensor.functions import numel as numel
from .tensor.functions import outer as outer
from .tensor.functions import positive as positive
from .tensor.functions import pow as pow
from .tensor.functions import prelu as prelu
from .tensor.functions import promote_types as promote_types
from .tensor.functions import rad2deg as rad2deg
from .tensor.functions import reciprocal as reciprocal
from .tensor.functions import relu as relu
from .tensor.functions import remainder as remainder
from .tensor.functions import repeat_interleave as repeat_interleave
from .tensor.functions import result_type as result_type
from .tensor.functions import roll as roll
from .tensor.functions import rot90 as rot90
from .tensor.functions import round as round
from .tensor.functions import rsqrt as rsqrt
from .tensor.functions import rsub as rsub
from .tensor.functions import selu as selu
from .tensor.functions import sigmoid as sigmoid
from .tensor.functions import sign as sign
from .tensor.functions import sin as sin
from .tensor.functions import sinc as sinc
from .tensor.functions import sinh as sinh
from .tensor.functions import softmax as softmax
from .tensor.functions import sqrt as sqrt
from .tensor.functions import square as square
from .tensor.functions import stack as stack
from .tensor.functions import sub as sub
from .tensor.functions import subtract as subtract
from .tensor.functions import tan as tan
from .tensor.functions import tanh as tanh
from .tensor.functions import tensordot as tensordot
from .tensor.functions import tile as tile
from .tensor.functions import trace as trace
from .tensor.functions import tril as tril
from .tensor.functions import triu as triu
from .tensor.functions import true_divide as true_divide
from .tensor.functions import trunc as trunc
from .tensor.functions import vdot as vdot
from .tensor.functions import vstack as row_stack  # noqa: F401
from .tensor.functions import vstack as vstack
from .tensor.functions import where as where
from .tensor.functions import xlogy as xlogy
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
from .tensor.more import BFloat16Tensor as BFloat16Tensor
from .tensor.more import BoolTensor as BoolTensor
from .tensor.more import ByteTensor as ByteTensor
from .tensor.more import CharTensor as CharTensor
from .tensor.more import DoubleTensor as DoubleTensor
from .tensor.more import FloatTensor as FloatTensor
from .tensor.more import HalfTensor as HalfTensor
from .tensor.more import IntTensor as IntTensor
from .tensor.more import LongTensor as LongTensor
from .tensor.more import ShortTensor as ShortTensor
from .tensor.more import broadcast_shapes as broadcast_shapes
from .tensor.more import cast as cast
from .tensor.more import conj as conj
from .tensor.more import expand as expand
from .tensor.more import gelu as gelu
from .tensor.more import hsplit as hsplit
from .tensor.more import imag as imag
from .tensor.more import mish as mish
from .tensor.more import quick_gelu as quick_gelu
from .tensor.more import real as real
from .tensor.more import repeat as repeat
from .tensor.more import silu as silu
from .tensor.more import softplus as softplus
from .tensor.more import softshrink as softshrink
from .tensor.more import softsign as softsign
from .tensor.more import threshold as threshold
from .tensor.more import to_global as to_global
from .tensor.more import view as view
from .tensor.more import vsplit as vsplit
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
from .tensor.views import broadcast_to as broadcast_to
from .tensor.views import diagonal as diagonal
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
