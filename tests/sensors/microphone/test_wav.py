"""The microphone that plays a WAV file."""

from __future__ import annotations

import io
import wave
from pathlib import Path

import pytest

from runtime.abi.envelope import AudioEnvelope
from runtime.abi.errors import SensorInvalid, SourceUnreadable
from sensors.microphone.wav import WavMicrophone, WavOptions
from sensors.sample import SourcePlan


def write(path: Path, pcm: bytes, *, channels: int = 1, width: int = 2, rate: int = 16_000) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(pcm)
    return path


def microphone(path: Path | str, *, fps: float = 5.0) -> WavMicrophone:
    return WavMicrophone(SourcePlan(channel="mic", argument=str(path), fps=fps, options=WavOptions()))


def pcm_of(source: WavMicrophone, counter: int) -> bytes:
    (sample,) = source.capture(counter)
    assert isinstance(sample.envelope, AudioEnvelope)
    with wave.open(io.BytesIO(sample.envelope.bytes)) as file:
        return file.readframes(file.getnframes())


def test_blocks_are_the_file_and_go_on_across_its_end(tmp_path: Path) -> None:
    sound = bytes(range(256)) * 39  # 4992 samples: one block and a half
    source = microphone(write(tmp_path / "a.wav", sound))
    played = b"".join(pcm_of(source, counter) for counter in range(1, 8))
    assert played == (sound * 5)[: 7 * 6400]
    source.close()


def test_a_file_shorter_than_a_block_plays_several_times(tmp_path: Path) -> None:
    source = microphone(write(tmp_path / "a.wav", b"\x01\x00\x02\x00\x03\x00"), fps=1600.0)
    assert pcm_of(source, 1) == (b"\x01\x00\x02\x00\x03\x00" * 4)[:20]
    source.close()


@pytest.mark.parametrize("wrong", [{"channels": 2}, {"width": 1}, {"rate": 44_100}])
def test_another_format_is_an_error_that_says_how_to_convert(tmp_path: Path, wrong: dict[str, int]) -> None:
    path = write(tmp_path / "a.wav", b"\x00" * 400, **wrong)
    with pytest.raises(SourceUnreadable, match="ffmpeg"):
        microphone(path)


@pytest.mark.parametrize("content", [b"", b"RIFF", b"no sound at all" * 10])
def test_a_file_that_is_no_wav_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.wav").write_bytes(content)
    with pytest.raises(SourceUnreadable, match="no PCM WAV"):
        microphone(tmp_path / "a.wav")


def test_an_empty_wav_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreadable, match="no sound"):
        microphone(write(tmp_path / "a.wav", b""))


def test_a_path_without_a_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreadable, match="there is no file"):
        microphone(tmp_path / "a.wav")


def test_a_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreadable, match="can't be read"):
        microphone(tmp_path)


def test_no_path_is_an_error() -> None:
    with pytest.raises(SensorInvalid):
        microphone("")
