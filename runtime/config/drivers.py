"""What ``[[sensors]]`` may say for each driver: sources, their own keys, and what holds when nothing is said."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from runtime.config.sections import Section

_Seed = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1, description="a whole number")]
_Side = Annotated[int, Meta(ge=64, le=8192, description="pixels from 64 to 8192")]
_Quality = Annotated[int, Meta(ge=1, le=100, description="a JPEG quality from 1 to 100")]
_Rate = Annotated[int, Meta(ge=4000, le=192_000, description="samples a second from 4000 to 192000")]


class Own(Section, frozen=True, kw_only=True):
    """The keys that only one source knows; what isn't given is the driver's to choose."""


class DrawnScene(Own, frozen=True, kw_only=True):
    """The synthetic camera: the scene's seed, the frame's size, JPEG quality."""

    seed: _Seed | None = None
    width: _Side | None = None
    height: _Side | None = None
    quality: _Quality | None = None


class Pictures(Own, frozen=True, kw_only=True):
    """Frames from files: JPEG quality where they have to be encoded."""

    quality: _Quality | None = None


class DrawnSound(Own, frozen=True, kw_only=True):
    """The synthetic microphone: the seed, samples a second."""

    seed: _Seed | None = None
    rate: _Rate | None = None


class SoundFile(Own, frozen=True, kw_only=True):
    """Sound from a file: the samples a second that it must have."""

    rate: _Rate | None = None


class Machine(Own, frozen=True, kw_only=True):
    """The host's own figures: a path on the disk to watch."""

    disk: Annotated[str, Meta(description="a path on the disk to watch")] | None = None


class Driver(msgspec.Struct, frozen=True, kw_only=True):
    """One driver: the keys of each source, and what it takes when nothing is said; ``fps`` messages a second.

    A source that ends in a colon is followed by a path.
    """

    source: str
    fps: float
    sources: dict[str, type[Own]]

    def keys_of(self, source: str) -> type[Own] | None:
        """The keys that belong to ``source``; None when the driver can't read from it."""
        scheme, colon, path = source.partition(":")
        return self.sources.get(scheme + colon) if bool(path) == bool(colon) else None


DRIVERS: dict[str, Driver] = {
    "camera": Driver(
        source="synthetic", fps=30, sources={"synthetic": DrawnScene, "images:": Pictures, "video:": Pictures}
    ),
    "microphone": Driver(source="synthetic", fps=5, sources={"synthetic": DrawnSound, "wav:": SoundFile}),
    "host": Driver(source="psutil", fps=2, sources={"psutil": Machine}),
}
