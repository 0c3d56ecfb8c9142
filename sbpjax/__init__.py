"""sbpjax: OneFlow's global tensors on JAX.

    import sbpjax as flow
    p = flow.placement("cpu", [0, 1, 2, 3])
    x = flow.randn(8, 4, placement=p, sbp=flow.sbp.split(0))

The public names, by the module that defines them. Importing sbpjax touches no device.
"""

from .world.pause import Pause as _Pause  # isort: skip  # first of all

_resting = _Pause()

from .distributed import jax_settings as _settings  # isort: skip  # noqa: F401  # first: it configures JAX
import sbpjax.functions.complex_numbers as _complex_numbers  # isort: skip  # noqa: F401  # these attach methods
import sbpjax.functions.conversions as _conversions  # isort: skip  # noqa: F401
import sbpjax.functions.printing as _printing  # isort: skip  # noqa: F401
import sbpjax.functions.protocols as _protocols  # isort: skip  # noqa: F401
import sbpjax.functions.strides as _strides  # isort: skip  # noqa: F401
from .tensor import indexing as _indexing  # isort: skip  # noqa: F401
from .tensor.tape import backward as _backward  # isort: skip  # noqa: F401
from .functions.printing import set_printoptions as set_printoptions
from .functions.settings import channels_last as channels_last
from .functions.settings import channels_last_3d as channels_last_3d
from .functions.settings import contiguous_format as contiguous_format
from .functions.settings import e as e
from .functions.settings import inf as inf
from .functions.settings import layout as layout
from .functions.settings import memory_format as memory_format
from .functions.settings import nan as nan
from .functions.settings import newaxis as newaxis
from .functions.settings import pi as pi
from .functions.settings import preserve_format as preserve_format
from .functions.settings import record as record
from .functions.settings import sparse_coo as sparse_coo
from .functions.settings import sparse_csr as sparse_csr
from .functions.settings import strided as strided
from .functions.settings import tensor_buffer as tensor_buffer
from .sbp.placement import placement as placement
from .sbp.policy import boxing_policy as boxing_policy
from .tensor.abstract import abstract as abstract
from .tensor.autocast import autocast as autocast
from .tensor.autocast import get_autocast_dtype as get_autocast_dtype
from .tensor.autocast import is_autocast_enabled as is_autocast_enabled
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
from .tensor.generator import Generator as Generator
from .tensor.generator import default_generator as default_generator
from .tensor.generator import fork_rng as fork_rng
from .tensor.generator import get_rng_state as get_rng_state
from .tensor.generator import initial_seed as initial_seed
from .tensor.generator import manual_seed as manual_seed
from .tensor.generator import seed as seed
from .tensor.generator import set_rng_state as set_rng_state
from .tensor.size import Size as Size
from .tensor.tape.grad_mode import enable_grad as enable_grad
from .tensor.tape.grad_mode import inference_mode as inference_mode
from .tensor.tape.grad_mode import is_grad_enabled as is_grad_enabled
from .tensor.tape.grad_mode import is_inference_mode_enabled as is_inference_mode_enabled
from .tensor.tape.grad_mode import no_grad as no_grad
from .tensor.tape.grad_mode import set_grad_enabled as set_grad_enabled
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

from .functions import tensor as tensor  # isort: skip  # not the room of that name

from .distributed import env as env  # isort: skip
from . import errors as errors  # isort: skip
from . import sbp as sbp  # isort: skip
from .naming import VERSION as __version__  # isort: skip  # noqa: F401
from .compat import rooms as _rooms  # isort: skip  # noqa: F401  # from here on its modules can be imported
from .compat import upper_rows as _upper_rows  # isort: skip  # noqa: F401
from .functions.table import face as _face  # isort: skip
from .tensor.wrong_call import tell as _tell  # isort: skip

_MODULES = """_C _oneflow_internal amp asyncs auto autograd backends boxing checkpoint comm cuda data=data distributed
 distributions fft func fx=compat.torch_names.fx graph GradScaler=amp:GradScaler hub inspect=inspect linalg
 mock_oneflow mock_torch models nn one_embedding optim pipeline profiler run serving special testing tracing=tracing
 train unittest utils vision"""
__getattr__, __dir__ = _face("", globals(), modules=_MODULES)
_tell(globals())
_tell(Tensor)


del _face, _resting, _tell
