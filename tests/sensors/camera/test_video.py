"""The camera that plays a video file."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from runtime.abi.envelope import VisualEnvelope
from runtime.abi.errors import SensorInvalid, SourceUnreadable
from sensors.camera.counter import draw_counter, read_counter
from sensors.camera.video import VideoCamera, VideoOptions
from sensors.sample import SourcePlan

FRAMES = 5


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five frames whose pixels carry the counters 1 to 5."""
    path = tmp_path_factory.mktemp("film") / "film.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 10, (320, 240))
    for counter in range(1, FRAMES + 1):
        image = np.full((240, 320, 3), 100, dtype=np.uint8)
        draw_counter(image, counter)
        writer.write(image)
    writer.release()
    return path


def camera(path: Path | str) -> VideoCamera:
    return VideoCamera(SourcePlan(channel="camera", argument=str(path), fps=30, options=VideoOptions()))


def counters(source: VideoCamera, count: int) -> list[int | None]:
    found = []
    for capture in range(1, count + 1):
        (sample,) = source.capture(capture)
        assert isinstance(sample.envelope, VisualEnvelope)
        image = cv2.imdecode(np.frombuffer(sample.envelope.bytes, dtype=np.uint8), cv2.IMREAD_COLOR)
        assert (sample.envelope.width, sample.envelope.height) == (320, 240)
        found.append(read_counter(image))
    return found


def test_every_frame_from_the_first_and_then_again(film: Path) -> None:
    source = camera(film)
    assert counters(source, 2 * FRAMES + 1) == [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1]
    source.close()


def test_a_path_without_a_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreadable, match="there is no file"):
        camera(tmp_path / "film.mp4")


@pytest.mark.parametrize("content", [b"", b"this is no film" * 100])
def test_a_file_that_is_no_video_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "film.mp4").write_bytes(content)
    with pytest.raises(SourceUnreadable, match="no video"):
        camera(tmp_path / "film.mp4")


def test_a_video_that_goes_away_ends_at_its_end(film: Path, tmp_path: Path) -> None:
    path = tmp_path / "film.avi"
    path.write_bytes(film.read_bytes())
    source = camera(path)
    path.unlink()
    assert counters(source, FRAMES) == [1, 2, 3, 4, 5]
    with pytest.raises(SourceUnreadable):
        source.capture(FRAMES + 1)


def test_no_path_is_an_error() -> None:
    with pytest.raises(SensorInvalid):
        camera("")
