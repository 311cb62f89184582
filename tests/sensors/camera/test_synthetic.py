"""The synthetic camera: a scene from a seed, each frame with its own counter."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest

from runtime.abi.envelope import VisualEnvelope
from runtime.abi.errors import SensorInvalid
from sensors.camera.counter import read_counter
from sensors.camera.synthetic import SyntheticCamera, SyntheticOptions
from sensors.sample import SourcePlan


def camera(argument: str = "", **options: Any) -> SyntheticCamera:
    plan = SourcePlan(channel="camera", argument=argument, fps=30, options=SyntheticOptions(**options))
    return SyntheticCamera(plan)


def frame(source: SyntheticCamera, counter: int) -> VisualEnvelope:
    (sample,) = source.capture(counter)
    assert isinstance(sample.envelope, VisualEnvelope)
    return sample.envelope


def pixels(envelope: VisualEnvelope) -> np.ndarray:
    return cv2.imdecode(np.frombuffer(envelope.bytes, dtype=np.uint8), cv2.IMREAD_COLOR)


def test_a_frame_is_a_jpeg_of_the_size_asked_for() -> None:
    envelope = frame(camera(), 1)
    assert (envelope.kind, envelope.width, envelope.height) == ("image/jpeg", 640, 480)
    assert pixels(envelope).shape == (480, 640, 3)


@pytest.mark.parametrize("counter", [1, 2, 30, 12_345_678])
def test_the_counter_is_in_the_pixels(counter: int) -> None:
    assert read_counter(pixels(frame(camera(), counter))) == counter


def test_a_frame_weighs_what_a_real_one_weighs() -> None:
    assert 15_000 < len(frame(camera(), 1).bytes) < 60_000


def test_a_frame_follows_from_seed_and_counter_alone() -> None:
    one, two = camera(seed=5), camera(seed=5)
    frame(two, 3)
    assert frame(one, 9).bytes == frame(two, 9).bytes
    assert frame(camera(seed=6), 9).bytes != frame(one, 9).bytes


def test_the_scene_moves() -> None:
    source = camera()
    before, after = (pixels(frame(source, counter))[60:].astype(int) for counter in (1, 30))
    assert np.abs(before - after).mean() > 5


def test_other_sizes() -> None:
    envelope = frame(camera(width=100, height=64), 4)
    assert pixels(envelope).shape == (64, 100, 3)
    assert read_counter(pixels(envelope)) == 4


def test_it_takes_no_argument() -> None:
    with pytest.raises(SensorInvalid):
        camera("something")
