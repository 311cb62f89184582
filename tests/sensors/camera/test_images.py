"""The camera that plays picture files."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from runtime.abi.envelope import VisualEnvelope
from runtime.abi.errors import SensorInvalid, SourceUnreadable
from sensors.camera.images import ImagesCamera, ImagesOptions
from sensors.sample import SourcePlan


def camera(glob: Path | str) -> ImagesCamera:
    return ImagesCamera(SourcePlan(channel="camera", argument=str(glob), fps=30, options=ImagesOptions()))


def write(path: Path, shade: int, *, width: int = 80, height: int = 60) -> bytes:
    assert cv2.imwrite(str(path), np.full((height, width, 3), shade, dtype=np.uint8))
    return path.read_bytes()


def frame(source: ImagesCamera, counter: int) -> VisualEnvelope:
    (sample,) = source.capture(counter)
    assert isinstance(sample.envelope, VisualEnvelope)
    return sample.envelope


def test_files_come_by_name_and_again_from_the_first(tmp_path: Path) -> None:
    expected = [write(tmp_path / f"{name}.jpg", shade) for name, shade in (("a", 10), ("b", 120), ("c", 250))]
    source = camera(tmp_path / "*.jpg")
    assert [frame(source, counter).bytes for counter in range(1, 8)] == [*expected, *expected, expected[0]]


@pytest.mark.parametrize(("name", "kind"), [("a.jpg", "image/jpeg"), ("a.png", "image/png")])
def test_jpeg_and_png_are_sent_as_they_are(tmp_path: Path, name: str, kind: str) -> None:
    data = write(tmp_path / name, 90)
    envelope = frame(camera(tmp_path / name), 1)
    assert (envelope.bytes, envelope.kind, envelope.width, envelope.height) == (data, kind, 80, 60)


def test_other_formats_become_jpeg(tmp_path: Path) -> None:
    write(tmp_path / "a.bmp", 90)
    envelope = frame(camera(tmp_path / "a.bmp"), 1)
    assert (envelope.kind, envelope.width, envelope.height) == ("image/jpeg", 80, 60)
    assert envelope.bytes.startswith(b"\xff\xd8\xff")


def test_a_glob_that_matches_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreadable, match="no file matches"):
        camera(tmp_path / "*.jpg")


def test_folders_are_no_pictures(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").mkdir()
    with pytest.raises(SourceUnreadable, match="no file matches"):
        camera(tmp_path / "*.jpg")


@pytest.mark.parametrize("content", [b"", b"no picture", b"\xff\xd8\xff cut off"])
def test_a_file_that_is_no_picture_is_an_error_at_the_start(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.jpg").write_bytes(content)
    with pytest.raises(SourceUnreadable, match="no picture"):
        camera(tmp_path / "a.jpg")


def test_a_file_that_goes_away_is_an_error_that_names_it(tmp_path: Path) -> None:
    write(tmp_path / "a.jpg", 1)
    source = camera(tmp_path / "a.jpg")
    (tmp_path / "a.jpg").unlink()
    with pytest.raises(SourceUnreadable, match=r"a\.jpg"):
        source.capture(1)


def test_no_glob_is_an_error() -> None:
    with pytest.raises(SensorInvalid):
        camera("")
