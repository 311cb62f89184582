"""What every source does alike: one suite for all of them."""

from __future__ import annotations

import json
import wave
from collections.abc import Iterator
from pathlib import Path

import cv2
import msgspec
import numpy as np
import pytest

from runtime.abi.envelope import DECODERS, MAX_BYTES, encode
from sensors.sample import Source
from sensors.settings import DRIVERS, open_source, read_settings

EVERY_SOURCE = [(driver, source) for driver, sources in DRIVERS.items() for source in sources]


def written(source: str, folder: Path) -> str:
    """The source with a file to play, where it needs one."""
    if source == "images":
        cv2.imwrite(str(folder / "a.png"), np.zeros((64, 64, 3), dtype=np.uint8))
        return f"images:{folder}/*.png"
    if source == "video":
        film = cv2.VideoWriter(str(folder / "a.avi"), cv2.VideoWriter.fourcc(*"MJPG"), 10, (64, 64))
        film.write(np.zeros((64, 64, 3), dtype=np.uint8))
        film.release()
        return f"video:{folder}/a.avi"
    if source == "wav":
        with wave.open(str(folder / "a.wav"), "wb") as sound:
            sound.setparams((1, 2, 16_000, 0, "NONE", ""))
            sound.writeframes(b"\x00\x01" * 100)
        return f"wav:{folder}/a.wav"
    return source


@pytest.fixture(params=EVERY_SOURCE, ids=lambda pair: "-".join(pair))
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Source]:
    driver, name = request.param
    settings = {"agent": "a", "broker": {"host": "x"}, "channel": "ch", "source": written(name, tmp_path)}
    opened, _ = open_source(driver, read_settings(json.dumps(settings)))
    yield opened
    opened.close()


def test_every_capture_is_something_the_kernel_can_read(source: Source) -> None:
    for counter in (1, 2, 3):
        for sample in source.capture(counter):
            data = encode(sample.envelope)
            assert len(data) <= MAX_BYTES[sample.kind]
            assert DECODERS[sample.kind].decode(data) == sample.envelope


def test_samples_come_on_the_channels_it_names(source: Source) -> None:
    assert {sample.channel for sample in source.capture(1)} <= set(source.channels)
    assert all(channel == "ch" or channel.startswith("ch.") for channel in source.channels)


def test_a_sample_is_not_numbered_yet(source: Source) -> None:
    assert all(sample.envelope.captured is None and sample.envelope.id is None for sample in source.capture(1))


def test_its_options_all_have_defaults(source: Source) -> None:
    assert isinstance(msgspec.convert({}, source.Options), source.Options)
