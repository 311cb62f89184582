"""Blocks of sound follow without gap or overlap, and read as WAV."""

from __future__ import annotations

import io
import wave

from hypothesis import given
from hypothesis import strategies as st

from sensors.microphone.block import audio, block_span


@given(st.integers(4000, 192_000), st.floats(0.5, 100), st.integers(1, 10_000))
def test_each_block_begins_where_the_one_before_ended(rate: int, fps: float, counter: int) -> None:
    first, end = block_span(counter, rate, fps)
    assert end > first
    assert block_span(counter + 1, rate, fps)[0] == end


@given(st.binary(min_size=2, max_size=200).filter(lambda pcm: len(pcm) % 2 == 0), st.integers(4000, 192_000))
def test_a_block_reads_as_the_wav_it_is(pcm: bytes, rate: int) -> None:
    envelope = audio(pcm, rate)
    with wave.open(io.BytesIO(envelope.bytes)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, rate)
        assert file.readframes(file.getnframes()) == pcm
    assert envelope.duration_ms == len(pcm) / 2 / rate * 1000
