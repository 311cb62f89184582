"""A camera that needs no hardware: a moving scene drawn from a seed, each frame carrying its own counter."""

from __future__ import annotations

from typing import ClassVar

import cv2
import msgspec
import numpy as np

from runtime.abi.errors import SensorInvalid
from sensors.camera.counter import draw_counter
from sensors.camera.jpeg import Pixels, Quality, Side, calm_opencv, visual
from sensors.sample import Sample, SourcePlan

DISCS = 5


class SyntheticOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The scene's seed, the frame's size in pixels, and the JPEG quality."""

    seed: int = 1
    width: Side = 640
    height: Side = 480
    quality: Quality = 80


class SyntheticCamera:
    """A view that drifts over a textured world, with discs that wander through it; frame n is always the same."""

    default_fps: ClassVar[float] = 30.0
    Options: ClassVar[type[msgspec.Struct]] = SyntheticOptions

    def __init__(self, plan: SourcePlan) -> None:
        if plan.argument:
            raise SensorInvalid("the source `synthetic` takes nothing after it", hint='Write source = "synthetic".')
        calm_opencv()
        self._options: SyntheticOptions = plan.options
        self._fps = plan.fps
        self.channels = (plan.channel,)
        random = np.random.default_rng(abs(self._options.seed))
        self._world = _world(random, width=self._options.width * 3 // 2, height=self._options.height * 3 // 2)
        self._colors = random.integers(0, 256, (DISCS, 3)).tolist()
        self._rates = random.uniform(0.05, 0.4, (DISCS + 1, 2))
        self._phases = random.uniform(0, 2 * np.pi, (DISCS + 1, 2))
        self._frame: Pixels = np.empty((self._options.height, self._options.width, 3), dtype=np.uint8)

    def draw(self, counter: int) -> Pixels:
        """Frame number ``counter`` as BGR pixels, in a buffer that the next call draws over."""
        frame, size = self._frame, np.array([self._options.width, self._options.height])
        places = (np.sin(2 * np.pi * self._rates * (counter / self._fps) + self._phases) + 1) / 2
        x, y = (places[0] * (size // 2)).astype(int).tolist()
        np.copyto(frame, self._world[y : y + size[1], x : x + size[0]])
        for color, center in zip(self._colors, (places[1:] * size).astype(int).tolist(), strict=True):
            cv2.circle(frame, center, int(size[1]) // 12, color, -1)
        draw_counter(frame, counter)
        return frame

    def capture(self, counter: int) -> list[Sample]:
        """One frame."""
        return [Sample(channel=self.channels[0], envelope=visual(self.draw(counter), self._options.quality))]

    def close(self) -> None:
        """Nothing to let go of."""


def _world(random: np.random.Generator, *, width: int, height: int) -> Pixels:
    """Soft patches of color with fine grain, so that a frame's JPEG is as large as a real camera's."""
    patches = random.integers(40, 216, (height // 40, width // 40, 3), dtype=np.uint8)
    soft = cv2.resize(patches, (width, height), interpolation=cv2.INTER_CUBIC).astype(np.int16)
    grain = random.integers(-4, 5, (height, width, 1), dtype=np.int16)
    world: Pixels = np.clip(soft + grain, 0, 255).astype(np.uint8)
    return world
