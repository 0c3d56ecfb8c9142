"""`enable` and `disable` of an alias: plain calls, context managers, and decorators alike."""

from __future__ import annotations

import contextlib
from typing import ClassVar

from .peer import FurtherPeer, Peer


class Enable(contextlib.ContextDecorator):
    """Answer to a peer's name, from the call on; as a context manager, until the end of the block.

    A global of the caller that is the real package is the peer for as long.

    Args:
        lazy: give placeholders for names that are missing, which raise when used, so that a library that merely
            mentions them can be imported.
        verbose: print which names are missing.
        extra_dict: further packages to answer for, such as ``{"torchvision": "mypackage"}``.
        packages: packages imported before with the real peer, to be imported anew within.
        mock_version: the value of ``__version__``.
    """

    _peer: Peer
    _shipped: ClassVar[dict[str, str]] = {}  # further packages that the peer's wheel has

    def __init__(
        self,
        lazy: bool | None = None,
        verbose: bool | None = None,
        extra_dict: dict[str, str] | None = None,
        *,
        packages: tuple[str, ...] | list[str] = (),
        mock_version: str | None = None,
    ) -> None:
        self._options = bool(lazy), bool(verbose), mock_version
        self._packages = tuple(packages)
        others = self._shipped | (extra_dict or {})
        self._others = [FurtherPeer(name, {name: (target,)}, "0") for name, target in others.items()]
        self._on = False
        self.enable()

    def enable(self) -> Enable:
        """Answer to the name (again)."""
        if not self._on:
            peer = self._peer
            self._held = peer.lazy, peer.verbose, peer.version
            peer.lazy, peer.verbose = self._options[:2]
            if self._options[2]:
                peer.version = type(peer.version)(self._options[2])
            peer.add_further(self._others)
            peer.enable(self._packages)
            self._on = True
        return self

    def disable(self) -> None:
        """Stop answering; doing so twice does nothing."""
        if self._on:
            self._peer.disable()
            self._peer.remove_further(self._others)
            self._peer.lazy, self._peer.verbose, self._peer.version = self._held
            self._on = False

    def __enter__(self) -> Enable:
        return self.enable()

    def __exit__(self, *exc) -> None:
        self.disable()


class Disable(contextlib.ContextDecorator):
    """Stop answering to a peer's name; as a context manager, until the end of the block."""

    _peer: Peer

    def __init__(self) -> None:
        self._depth = 0
        self._enter()

    def _enter(self) -> None:
        if not self._depth:
            self._depth = self._peer.depth
            for _ in range(self._depth):
                self._peer.disable()

    def __enter__(self) -> Disable:
        self._enter()
        return self

    def __exit__(self, *exc) -> None:
        for _ in range(self._depth):
            self._peer.enable()
        self._depth = 0
