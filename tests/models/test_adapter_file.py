"""The digest of an adapter. Files that do not fit a model are in test_lora.py, damaged ones in tests/fuzz."""

import numpy as np

from sbpjax.models.adapter_file import digest


def test_a_digest_is_of_names_shapes_values_and_scales():
    tensors, values = {"a": np.arange(6, dtype=np.float32).reshape(2, 3)}, {"r": 2, "lora_alpha": 4.0}
    whole = digest(tensors, values)
    assert whole == digest({"a": np.asfortranarray(tensors["a"])}, values | {"target_modules": ["q"]})
    others = [
        digest({"b": tensors["a"]}, values),
        digest({"a": tensors["a"].reshape(3, 2)}, values),
        digest({"a": tensors["a"] + 1}, values),
        digest({"a": tensors["a"].view(np.int32)}, values),
        digest(tensors, values | {"lora_alpha": 5.0}),
    ]
    assert len({whole, *others}) == 6
