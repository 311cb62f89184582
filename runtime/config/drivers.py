"""What ``[[sensors]]`` may say for each driver: its sources, its own keys, and what it takes when nothing is said."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from runtime.config.sections import Section

_Seed = Annotated[int, Meta(ge=0, le=2**63 - 1, description="a whole number from 0")]
_Pixels = Annotated[int, Meta(ge=64, le=8192, description="pixels from 64 to 8192")]


class CameraOptions(Section, frozen=True, kw_only=True, omit_defaults=True):
    """The camera's own keys: pixels, the seed of the synthetic scene, JPEG quality."""

    width: _Pixels = 640
    height: _Pixels = 480
    seed: _Seed = 0
    quality: Annotated[int, Meta(ge=1, le=100, description="a JPEG quality from 1 to 100")] = 80


class MicrophoneOptions(Section, frozen=True, kw_only=True, omit_defaults=True):
    """The microphone's own keys: samples a second, the seed of the synthetic sound."""

    rate_hz: Annotated[int, Meta(ge=8000, le=192_000, description="samples a second from 8000 to 192000")] = 16_000
    seed: _Seed = 0


class HostOptions(Section, frozen=True, kw_only=True, omit_defaults=True):
    """The host driver has no keys of its own."""


class Driver(msgspec.Struct, frozen=True, kw_only=True):
    """One driver: ``sources`` are whole words, or prefixes when they end in a colon."""

    source: str
    sources: tuple[str, ...]
    fps: float
    options: type[Section]

    def takes(self, source: str) -> bool:
        """Whether the driver can read from ``source``."""
        return any(
            source.startswith(known) and len(source) > len(known) if known.endswith(":") else source == known
            for known in self.sources
        )


DRIVERS: dict[str, Driver] = {
    "camera": Driver(source="synthetic", sources=("synthetic", "images:", "video:"), fps=30, options=CameraOptions),
    "microphone": Driver(source="synthetic", sources=("synthetic", "wav:"), fps=5, options=MicrophoneOptions),
    "host": Driver(source="psutil", sources=("psutil",), fps=2, options=HostOptions),
}
