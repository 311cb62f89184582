"""One block of sound as the bytes of a WAV file, so that whoever reads it needs to know nothing else."""

from __future__ import annotations

import struct

from runtime.abi.envelope import AudioEnvelope

BYTES_PER_SAMPLE = 2


def wav_bytes(pcm: bytes, rate: int) -> bytes:
    """16-bit little-endian mono samples behind a WAV header; ``rate`` in samples a second."""
    header = struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF",
        36 + len(pcm),
        b"WAVE",
        b"fmt ",
        16,  # the length of what follows up to "data"
        1,  # PCM
        1,  # mono
        rate,
        rate * BYTES_PER_SAMPLE,
        BYTES_PER_SAMPLE,
        8 * BYTES_PER_SAMPLE,
        b"data",
        len(pcm),
    )
    return header + pcm


def audio(pcm: bytes, rate: int) -> AudioEnvelope:
    """The envelope of one block; its duration follows from its length."""
    duration_ms = len(pcm) / BYTES_PER_SAMPLE / rate * 1000
    return AudioEnvelope(bytes=wav_bytes(pcm, rate), duration_ms=duration_ms)


def block_span(counter: int, rate: int, fps: float) -> tuple[int, int]:
    """First sample and the one after the last of block ``counter`` (from 1): blocks follow without gap or overlap."""
    return round((counter - 1) * rate / fps), round(counter * rate / fps)
