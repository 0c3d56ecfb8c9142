"""Signed key-value store over JAX's coordination service: only values of ranks of this run verify.

The service has no passwords: anyone who reaches its port may read, write and delete. So every value is encoded
(`_core.serialization.encoding`, which runs nothing when it is read) and signed with the key of the run, together with
its name. A stranger's value, a value of another meeting or rank, or one of an earlier run does not verify.
"""

from __future__ import annotations

from typing import Any

import jax

from sbpjax.errors import EncodingError, ForeignMessageError, SignatureError, page

from ..serialization import encoding, signing


class Store:
    """Signed values by name."""

    def __init__(self, client: Any, key: bytes) -> None:
        self._client = client
        self._key = key

    def put(self, name: str, value: Any) -> None:
        """Write a value under a name that has none; a foreign value is replaced, and reported to the caller."""
        data = signing.sign(self._key, name, encoding.encode(value))
        try:
            self._client.key_value_set_bytes(name, data)
        except jax.errors.JaxRuntimeError as error:
            if "ALREADY_EXISTS" not in str(error):
                raise
            try:
                self.get_value(name)
            except ForeignMessageError:
                self._client.key_value_set_bytes(name, data, allow_overwrite=True)
                raise
            raise

    def wait(self, name: str, wait_ms: int) -> Any:
        """Return the value under a name, waiting for it."""
        return self._read(name, self._client.blocking_key_value_get_bytes(name, wait_ms))

    def get_value(self, name: str) -> Any:
        """Return the value under a name; errors as of `wait`, NOT_FOUND if there is none."""
        return self._read(name, self._client.key_value_try_get_bytes(name))

    def replace(self, name: str, value: Any) -> None:
        """Write a value under a name, replacing any other."""
        data = signing.sign(self._key, name, encoding.encode(value))
        self._client.key_value_set_bytes(name, data, allow_overwrite=True)

    def find(self, name: str) -> Any:
        """Return the value under a name; None if there is none, or one that no rank of this run wrote."""
        try:
            return self.get_value(name)
        except ForeignMessageError:
            return None
        except jax.errors.JaxRuntimeError as error:
            if "NOT_FOUND" in str(error):
                return None
            raise

    def drop(self, name: str) -> None:
        """Remove a value."""
        self._client.key_value_delete(name)

    def _read(self, name: str, data: bytes) -> Any:
        try:
            return encoding.decode(signing.verify_signature(self._key, name, data))
        except (SignatureError, EncodingError):
            raise ForeignMessageError(
                f"reading {name} from the store of the coordinator",
                f"{len(data)} bytes that no rank of this run signed",
                "only data that ranks with the secret of this job wrote are read; nothing of this was run",
                "keep strangers from the coordinator's port; give all ranks one secret; see "
                + page("explanation/security.md"),
            ) from None
