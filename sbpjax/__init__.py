"""sbpjax: OneFlow's global tensors on JAX.

    import sbpjax as flow
    p = flow.placement("cpu", [0, 1, 2, 3])
    x = flow.randn(8, 4, placement=p, sbp=flow.sbp.split(0))

The public names, by the module that defines them. Importing sbpjax touches no device.
"""

from ._core.runtime.gc_pause import Pause as _Pause  # isort: skip  # first of all

_resting = _Pause()

from .distributed import jax_settings as _settings  # isort: skip  # first: it configures JAX
import sbpjax._core.functions.tensor_methods as _tensor_methods  # isort: skip  # fills the class
from ._core.functions.printing import set_printoptions as set_printoptions
from ._core.functions.settings import channels_last as channels_last
from ._core.functions.settings import channels_last_3d as channels_last_3d
from ._core.functions.settings import contiguous_format as contiguous_format
from ._core.functions.settings import e as e
from ._core.functions.settings import inf as inf
from ._core.functions.settings import layout as layout
from ._core.functions.settings import memory_format as memory_format
from ._core.functions.settings import nan as nan
from ._core.functions.settings import newaxis as newaxis
from ._core.functions.settings import pi as pi
from ._core.functions.settings import preserve_format as preserve_format
from ._core.functions.settings import record as record
from ._core.functions.settings import sparse_coo as sparse_coo
from ._core.functions.settings import sparse_csr as sparse_csr
from ._core.functions.settings import strided as strided
from ._core.functions.settings import tensor_buffer as tensor_buffer
from ._core.tensor.amp.autocast import autocast as autocast
from ._core.tensor.amp.autocast import get_autocast_dtype as get_autocast_dtype
from ._core.tensor.amp.autocast import is_autocast_enabled as is_autocast_enabled
from ._core.tensor.creation.from_data import BFloat16Tensor as BFloat16Tensor
from ._core.tensor.creation.from_data import BoolTensor as BoolTensor
from ._core.tensor.creation.from_data import ByteTensor as ByteTensor
from ._core.tensor.creation.from_data import CharTensor as CharTensor
from ._core.tensor.creation.from_data import DoubleTensor as DoubleTensor
from ._core.tensor.creation.from_data import FloatTensor as FloatTensor
from ._core.tensor.creation.from_data import HalfTensor as HalfTensor
from ._core.tensor.creation.from_data import IntTensor as IntTensor
from ._core.tensor.creation.from_data import LongTensor as LongTensor
from ._core.tensor.creation.from_data import ShortTensor as ShortTensor
from ._core.tensor.creation.generator import Generator as Generator
from ._core.tensor.creation.generator import default_generator as default_generator
from ._core.tensor.creation.generator import fork_rng as fork_rng
from ._core.tensor.creation.generator import get_rng_state as get_rng_state
from ._core.tensor.creation.generator import initial_seed as initial_seed
from ._core.tensor.creation.generator import manual_seed as manual_seed
from ._core.tensor.creation.generator import seed as seed
from ._core.tensor.creation.generator import set_rng_state as set_rng_state
from ._core.tensor.dispatch.abstract import abstract as abstract
from ._core.tensor.handle.device import device as device
from ._core.tensor.handle.dtype import bfloat16 as bfloat16
from ._core.tensor.handle.dtype import bool_ as bool  # noqa: F401
from ._core.tensor.handle.dtype import byte as byte
from ._core.tensor.handle.dtype import cdouble as cdouble
from ._core.tensor.handle.dtype import cfloat as cfloat
from ._core.tensor.handle.dtype import char as char
from ._core.tensor.handle.dtype import complex64 as complex64
from ._core.tensor.handle.dtype import complex128 as complex128
from ._core.tensor.handle.dtype import double as double
from ._core.tensor.handle.dtype import dtype as dtype
from ._core.tensor.handle.dtype import finfo as finfo
from ._core.tensor.handle.dtype import float8_e4m3fn as float8_e4m3fn
from ._core.tensor.handle.dtype import float8_e5m2 as float8_e5m2
from ._core.tensor.handle.dtype import float16 as float16
from ._core.tensor.handle.dtype import float32 as float32
from ._core.tensor.handle.dtype import float64 as float64
from ._core.tensor.handle.dtype import float_ as float  # noqa: F401
from ._core.tensor.handle.dtype import get_default_dtype as get_default_dtype
from ._core.tensor.handle.dtype import half as half
from ._core.tensor.handle.dtype import iinfo as iinfo
from ._core.tensor.handle.dtype import int8 as int8
from ._core.tensor.handle.dtype import int16 as int16
from ._core.tensor.handle.dtype import int32 as int32
from ._core.tensor.handle.dtype import int64 as int64
from ._core.tensor.handle.dtype import int_ as int  # noqa: F401
from ._core.tensor.handle.dtype import long as long
from ._core.tensor.handle.dtype import set_default_dtype as set_default_dtype
from ._core.tensor.handle.dtype import short as short
from ._core.tensor.handle.dtype import uint8 as uint8
from ._core.tensor.handle.dtype import uint16 as uint16
from ._core.tensor.handle.dtype import uint32 as uint32
from ._core.tensor.handle.dtype import uint64 as uint64
from ._core.tensor.handle.size import Size as Size
from ._core.tensor.handle.tensor import Tensor as Tensor
from ._core.tensor.tape.grad_mode import enable_grad as enable_grad
from ._core.tensor.tape.grad_mode import inference_mode as inference_mode
from ._core.tensor.tape.grad_mode import is_grad_enabled as is_grad_enabled
from ._core.tensor.tape.grad_mode import is_inference_mode_enabled as is_inference_mode_enabled
from ._core.tensor.tape.grad_mode import no_grad as no_grad
from ._core.tensor.tape.grad_mode import set_grad_enabled as set_grad_enabled
from .sbp.placement import placement as placement
from .sbp.policy import boxing_policy as boxing_policy

from ._core.functions import tensor as tensor  # isort: skip  # not the package of that name

from .distributed import env as env  # isort: skip
from . import errors as errors  # isort: skip
from . import sbp as sbp  # isort: skip
from ._core.naming import VERSION as __version__  # isort: skip  # noqa: F401
from ._core.compat import reexports as _reexports  # isort: skip  # from here on its modules can be imported
from ._core.compat import upper_rows as _upper_rows  # isort: skip
from ._core.functions.table.table import reexport_hooks as _reexport_hooks  # isort: skip
from ._core.tensor.calls.argument_errors import add_argument_errors as _add_argument_errors  # isort: skip

_MODULES = """_C _oneflow_internal amp asyncs auto autograd backends boxing checkpoint comm cuda data=data distributed
 distributions fft func fx=_core.compat.no_effect.fx graph GradScaler=amp:GradScaler hub linalg mock_oneflow
 mock_torch models nn one_embedding optim pipeline profiler run serving special testing train unittest utils vision"""
__getattr__, __dir__ = _reexport_hooks("", globals(), modules=_MODULES)
_add_argument_errors(globals())
_add_argument_errors(Tensor)


del (
    _reexport_hooks,
    _resting,
    _add_argument_errors,
    _MODULES,
    _Pause,
    _reexports,
    _settings,
    _tensor_methods,
    _upper_rows,
)
