"""A microphone that plays a WAV file, from its beginning again when it ends."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec

from runtime.abi.errors import SensorInvalid, SourceUnreadable
from sensors.microphone.block import BYTES_PER_SAMPLE, audio, block_span
from sensors.sample import Sample, SourcePlan


class WavOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Samples a second that the file must have."""

    rate: Annotated[int, msgspec.Meta(ge=4000, le=192_000)] = 16_000


class WavMicrophone:
    """``wav:<path>``: 16-bit mono PCM at ``rate``; blocks run on across the end of the file."""

    default_fps: ClassVar[float] = 5.0
    Options: ClassVar[type[msgspec.Struct]] = WavOptions

    def __init__(self, plan: SourcePlan) -> None:
        if not plan.argument:
            raise SensorInvalid("the source `wav` names no file", hint='Write source = "wav:speech.wav".')
        self._path = Path(plan.argument)
        self._rate: int = plan.options.rate
        self._fps = plan.fps
        self.channels = (plan.channel,)
        self._file = self._open()
        self._check()

    def capture(self, counter: int) -> list[Sample]:
        """One block of ``rate / fps`` samples."""
        first, end = block_span(counter, self._rate, self._fps)
        wanted, pcm = (end - first) * BYTES_PER_SAMPLE, b""
        while len(pcm) < wanted:
            piece = self._read((wanted - len(pcm)) // BYTES_PER_SAMPLE)
            pcm += piece or self._rewound()
        return [Sample(channel=self.channels[0], envelope=audio(pcm[:wanted], self._rate))]

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _open(self) -> wave.Wave_read:
        try:
            return wave.open(str(self._path), "rb")
        except FileNotFoundError as error:
            raise SourceUnreadable(
                f"there is no file {str(self._path)!r}", hint=f"the path is relative to {Path.cwd()}; correct `source`"
            ) from error
        except OSError as error:
            raise SourceUnreadable(f"{self._path} can't be read: {error.strerror}", hint="check the file") from error
        except (wave.Error, EOFError) as error:
            raise self._wrong(f"is no PCM WAV file ({error or 'it ends too early'})") from error

    def _check(self) -> None:
        shape = self._file.getnchannels(), self._file.getsampwidth() * 8, self._file.getframerate()
        if shape != (1, 16, self._rate):
            raise self._wrong(f"has {shape[0]} channel(s), {shape[1]} bits, {shape[2]} Hz; 1, 16, {self._rate} wanted")
        if self._file.getnframes() == 0:
            raise self._wrong("has no sound in it")

    def _read(self, samples: int) -> bytes:
        try:
            return self._file.readframes(samples)
        except (wave.Error, EOFError, OSError) as error:
            raise self._wrong(f"can't be read any more ({error})") from error

    def _rewound(self) -> bytes:
        """The first sample after going back to the beginning; a file without any was cut while it played."""
        self._file.rewind()
        piece = self._read(1)
        if len(piece) != BYTES_PER_SAMPLE:
            raise self._wrong("has no sound in it any more")
        return piece

    def _wrong(self, what: str) -> SourceUnreadable:
        return SourceUnreadable(
            f"{str(self._path)!r} {what}",
            hint=f"convert it: ffmpeg -i IN -ac 1 -ar {self._rate} -c:a pcm_s16le OUT.wav",
        )
