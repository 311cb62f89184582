"""The synthetic microphone: sound from a seed."""

from __future__ import annotations

import io
import wave
from typing import Any

import numpy as np
import pytest

from runtime.abi.envelope import AudioEnvelope
from runtime.abi.errors import SensorInvalid
from sensors.microphone.synthetic import SyntheticMicrophone, SyntheticOptions
from sensors.sample import SourcePlan


def microphone(argument: str = "", **options: Any) -> SyntheticMicrophone:
    plan = SourcePlan(channel="mic", argument=argument, fps=5, options=SyntheticOptions(**options))
    return SyntheticMicrophone(plan)


def block(source: SyntheticMicrophone, counter: int) -> AudioEnvelope:
    (sample,) = source.capture(counter)
    assert isinstance(sample.envelope, AudioEnvelope)
    return sample.envelope


def samples(envelope: AudioEnvelope) -> np.ndarray:
    with wave.open(io.BytesIO(envelope.bytes)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), dtype="<i2").astype(float)


def test_a_block_is_200_ms_at_16_khz() -> None:
    envelope = block(microphone(), 1)
    assert envelope.duration_ms == 200
    assert len(samples(envelope)) == 3200


def test_a_block_follows_from_seed_and_counter_alone() -> None:
    one, two = microphone(seed=5), microphone(seed=5)
    block(two, 3)
    assert block(one, 9).bytes == block(two, 9).bytes
    assert block(microphone(seed=6), 9).bytes != block(one, 9).bytes


def test_blocks_continue_each_other() -> None:
    source = microphone()
    before, after = samples(block(source, 10)), samples(block(source, 11))
    usual = np.abs(np.diff(before)).max()
    assert abs(after[0] - before[-1]) <= usual


def test_now_and_then_it_is_loud() -> None:
    source = microphone()
    loudness = [np.abs(samples(block(source, counter))).max() for counter in range(2, 38)]
    assert max(loudness) > 3 * float(np.median(loudness))


def test_it_takes_no_argument() -> None:
    with pytest.raises(SensorInvalid):
        microphone("something")
