"""The methods of `Tensor` that these modules attach to it; the order is that of what they build on.

``import sbpjax.functions.random`` and not ``from``, which would first look for an op of that name.
"""

import sbpjax.functions.operators as _operators  # isort: skip  # noqa: F401
from sbpjax.tensor import convert as _convert  # isort: skip  # noqa: F401
from sbpjax.tensor import storage as _storage  # isort: skip  # noqa: F401
from sbpjax.tensor import creation as _creation  # isort: skip  # noqa: F401
from sbpjax.tensor import from_data as _from_data  # isort: skip  # noqa: F401
from sbpjax.tensor import like as _like  # isort: skip  # noqa: F401
from sbpjax.tensor import views as _views  # isort: skip  # noqa: F401
from sbpjax.tensor import splitting as _splitting  # isort: skip  # noqa: F401
from sbpjax.tensor import inplace as _inplace  # isort: skip  # noqa: F401
from sbpjax.tensor import indexing as _indexing  # isort: skip  # noqa: F401
from sbpjax.tensor.tape import backward as _backward  # isort: skip  # noqa: F401
import sbpjax.functions.elementwise as _elementwise  # isort: skip  # noqa: F401
import sbpjax.functions.conversions as _conversions  # isort: skip  # noqa: F401
import sbpjax.functions.printing as _printing  # isort: skip  # noqa: F401
import sbpjax.functions.random as _random  # isort: skip  # noqa: F401
import sbpjax.functions.complex_numbers as _complex_numbers  # isort: skip  # noqa: F401
import sbpjax.functions.strides as _strides  # isort: skip  # noqa: F401
import sbpjax.functions.protocols as _protocols  # isort: skip  # noqa: F401
