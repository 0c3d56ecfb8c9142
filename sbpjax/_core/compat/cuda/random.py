"""`torch.cuda` seeds and states: one random stream serves all devices."""

from __future__ import annotations

from typing import Any

from sbpjax._core.tensor.creation import generator

from .devices import device_count

default_generators = (generator.default_generator,)


def manual_seed(seed: int) -> None:
    """Seed the default generator."""
    generator.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the default generator."""
    generator.manual_seed(seed)


def seed() -> None:
    """Seed the default generator with a random number."""
    generator.seed()


def seed_all() -> None:
    """Seed the default generator with a random number."""
    generator.seed()


def initial_seed() -> int:
    """Return the default generator's seed."""
    return generator.initial_seed()


def get_rng_state(device: Any = "cuda") -> Any:
    """Return the default generator's state."""
    return generator.get_rng_state()


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Set the default generator's state."""
    generator.set_rng_state(new_state)


def get_rng_state_all() -> list:
    """Return the default generator's state, once per GPU."""
    return [generator.get_rng_state() for _ in range(device_count())]


def set_rng_state_all(new_states: Any) -> None:
    """Set the default generator's state to the first of them."""
    for state in list(new_states)[:1]:
        generator.set_rng_state(state)
