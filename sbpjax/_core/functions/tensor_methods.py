"""The methods and properties of `Tensor` that are written by hand, by the modules that define them.

Importing this module puts them into the class. The class also has its own in `_core.tensor.handle.tensor`, and those of
the table of ops (`rows`, shown as `METHOD` or `INPLACE`).
"""

from __future__ import annotations

from typing import Any

# Not `from . import`, which calls `__getattr__` of the package first, and so builds the table of absent names.
import sbpjax._core.functions.complex_numbers as complex_numbers
import sbpjax._core.functions.conversions as conversions
import sbpjax._core.functions.operators as operators
import sbpjax._core.functions.printing as printing
import sbpjax._core.functions.protocols as protocols
import sbpjax._core.functions.strides as strides
from sbpjax._core.tensor.calls import op_errors
from sbpjax._core.tensor.creation import convert, from_data, jax_type
from sbpjax._core.tensor.dispatch import abstract
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax._core.tensor.storage import indexing, storage, views
from sbpjax._core.tensor.tape import backward

# Kinds of tensors and devices that do not exist here.
NEVER = "is_sparse is_sparse_csr is_quantized is_nested is_mkldnn is_mps is_xpu is_ipu is_mtia is_vulkan".split()
DIVISIONS = "__floordiv__ __rfloordiv__ __mod__ __rmod__ ".split()
IN_PLACE = {
    "__iadd__": "add_",
    "__isub__": "sub_",
    "__imul__": "mul_",
    "__itruediv__": "div_",
    "__idiv__": "div_",
    "__ifloordiv__": "floor_divide_",
    "__imod__": "remainder_",
    "__ipow__": "pow_",
    "__iand__": "bitwise_and_",
    "__ior__": "bitwise_or_",
    "__ixor__": "bitwise_xor_",
    "__ilshift__": "bitwise_left_shift_",
    "__irshift__": "bitwise_right_shift_",
}
CASTS = {
    "float": dtypes.float32,
    "double": dtypes.float64,
    "half": dtypes.float16,
    "bfloat16": dtypes.bfloat16,
    "long": dtypes.int64,
    "int": dtypes.int32,
    "short": dtypes.int16,
    "char": dtypes.int8,
    "byte": dtypes.uint8,
    "bool": dtypes.bool_,
}

METHODS: dict[str, Any] = {
    # operators.py
    **{name: operators.binary_operator(name) for name in operators.OPS},
    **{name: operators.division(name) for name in DIVISIONS},
    **{name: operators.in_place(method) for name, method in IN_PLACE.items()},
    "__div__": operators.binary_operator("__truediv__"),
    "__rdiv__": operators.binary_operator("__rtruediv__"),
    "__matmul__": operators.matmul,
    "__rmatmul__": operators.rmatmul,
    "__pow__": operators.power,
    "__rpow__": operators.rpower,
    "__neg__": operators.negative,
    "__pos__": lambda self: self,
    "__abs__": operators.absolute,
    "__invert__": operators.invert,
    # tensor/creation: from_data.py, convert.py, jax_type.py
    "_made_of": staticmethod(from_data.legacy),
    "__bool__": convert.to_bool,
    "__nonzero__": convert.to_bool,
    "__int__": lambda self: int(convert.item(self)),
    "__long__": lambda self: int(convert.item(self)),
    "__float__": lambda self: float(convert.item(self)),
    "__complex__": lambda self: complex(convert.item(self)),
    "__index__": convert.to_index,
    "item": convert.item,
    "__jax_array__": jax_type.array_of,
    "__numpy_dtype__": property(lambda self: self.dtype.np),  # read by `jnp.zeros_like`, `jax.jvp`, `optax`
    "_committed": property(jax_type.is_committed),
    "sharding": property(jax_type.sharding_of),
    "jax": convert.jax_array,
    "local_shards": convert.local_shards,
    "numpy": convert.numpy,
    "to_numpy": convert.numpy,
    "tolist": convert.tolist,
    # tensor/calls/op_errors.py, tensor/dispatch/abstract.py
    "_mixed": staticmethod(op_errors.mixed_error),
    "is_meta": property(abstract.is_abstract),
    # tensor/storage: storage.py, indexing.py, views.py
    "_base": property(storage.base_of),
    "_regenerate": storage.regenerate,
    "_set_payload": storage.set_payload,
    "data": property(storage.data, storage.set_data),
    "detach": storage.detach,
    "detach_": storage.detach_,
    "__contains__": indexing.contains,
    "__getitem__": indexing.getitem,
    "__iter__": indexing.iterate,
    "__setitem__": indexing.setitem,
    "index_put": indexing.index_put,
    "index_put_": indexing.index_put_,
    "H": property(lambda self: views.transpose(self, 0, 1).conj()),
    "T": property(lambda self: views.permute(self, *reversed(range(self.ndim)))),
    "_is_view": views.is_view,
    "is_view": property(views.is_view),
    "mH": property(views.adjoint),
    "mT": property(lambda self: views.transpose(self, -2, -1)),
    # tensor/tape/backward.py
    "backward": backward.backward_method,
    "register_hook": backward.register_hook,
    "register_post_accumulate_grad_hook": backward.register_post_accumulate_grad_hook,
    "retain_grad": backward.retain_grad,
    # conversions.py
    **{name: conversions.caster(name, dtype) for name, dtype in CASTS.items()},
    "__deepcopy__": conversions.deepcopy,
    "__reduce_ex__": conversions.reduce,
    "cpu": conversions.cpu,
    "cuda": conversions.cuda,
    "get_device": conversions.get_device,
    "is_signed": conversions.is_signed,
    "to": conversions.to,
    "type": conversions.type_,
    # complex_numbers.py, printing.py, protocols.py, strides.py
    "imag": property(complex_numbers.imag, complex_numbers.setter_of(complex_numbers.imag)),
    "real": property(complex_numbers.real, complex_numbers.setter_of(complex_numbers.real)),
    "__format__": printing.format_tensor,
    "__repr__": printing.text_of,
    "__str__": printing.text_of,
    "__array_wrap__": protocols.array_wrap,
    "__dlpack__": protocols.dlpack,
    "__dlpack_device__": protocols.dlpack_device,
    "is_cpu": property(lambda self: protocols.is_on(self, "cpu")),
    "is_xla": property(lambda self: protocols.is_on(self, "tpu")),
    "__delitem__": strides.reject_deletion,
    "__setstate__": strides.set_state,
    "const_data_ptr": strides.data_ptr,
    "global_id": strides.global_id,
    "storage_type": lambda self: strides.Storage,
    # facts
    **{name: property(lambda self: False) for name in NEVER},
    "__reversed__": lambda self: self.flip(*range(self.ndim)) if self.ndim else self,
    "dim": lambda self: self.ndim,
    "element_size": lambda self: self.dtype.itemsize,
    "is_cuda": property(lambda self: self.layout is None and self.device.type == "cuda"),
    "is_pinned": lambda self: False,
    "is_shared": lambda self: False,
    "itemsize": property(lambda self: self.dtype.itemsize),
    "name": property(lambda self: None),
    "nbytes": property(lambda self: self.dtype.itemsize * self.shape.numel()),
    "ndimension": lambda self: self.ndim,
    "nelement": lambda self: self.shape.numel(),
    "pin_memory": lambda self: self,
}

for _name, _member in METHODS.items():
    setattr(Tensor, _name, _member)
