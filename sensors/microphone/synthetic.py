"""A microphone that needs no hardware: a humming room with a gliding tone and now and then a clap, from a seed."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
import numpy as np

from runtime.abi.envelope import AudioEnvelope
from runtime.abi.errors import SensorInvalid
from sensors.microphone.block import audio, block_span
from sensors.sample import Sample, SourcePlan

HUM_HZ = 50.0
CLAP_EVERY_S = 7.0
CLAP_DECAY_S = 0.03


class SyntheticOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The room's seed, and samples a second."""

    seed: int = 1
    rate: Annotated[int, msgspec.Meta(ge=4000, le=192_000)] = 16_000


class SyntheticMicrophone:
    """Block n is always the same for one seed, and continues block n - 1 without a click."""

    default_fps: ClassVar[float] = 5.0
    Options: ClassVar[type[msgspec.Struct]] = SyntheticOptions

    def __init__(self, plan: SourcePlan) -> None:
        if plan.argument:
            raise SensorInvalid("the source `synthetic` takes nothing after it", hint='Write source = "synthetic".')
        self._options: SyntheticOptions = plan.options
        self._fps = plan.fps
        self.channels = (plan.channel,)

    def capture(self, counter: int) -> list[Sample]:
        """One block of ``rate / fps`` samples."""
        return [Sample(channel=self.channels[0], envelope=self._block(counter))]

    def close(self) -> None:
        """Nothing to let go of."""

    def _block(self, counter: int) -> AudioEnvelope:
        first, end = block_span(counter, self._options.rate, self._fps)
        at_s = np.arange(first, end) / self._options.rate
        random = np.random.default_rng([abs(self._options.seed), counter])
        noise = random.normal(0.0, 1.0, len(at_s))
        hum = 0.03 * np.sin(2 * np.pi * HUM_HZ * at_s)
        tone = 0.05 * np.sin(2 * np.pi * 330.0 * at_s + 40.0 * np.sin(2 * np.pi * 0.1 * at_s))
        clap = 0.6 * np.exp(-(at_s % CLAP_EVERY_S) / CLAP_DECAY_S) * noise
        wave = np.clip(hum + tone + clap + 0.005 * noise, -1.0, 1.0)
        return audio((wave * 32767).astype("<i2").tobytes(), self._options.rate)
