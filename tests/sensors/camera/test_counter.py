"""The counter in the pixels survives JPEG and scaling, and is not seen where there is none."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sensors.camera.counter import draw_counter, read_counter


def noisy(width: int, height: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def through_jpeg(image: np.ndarray, quality: int) -> np.ndarray:
    return cv2.imdecode(cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])[1], cv2.IMREAD_COLOR)


@given(st.integers(0, 2**32 - 1), st.integers(10, 100))
def test_it_survives_jpeg_of_any_quality(counter: int, quality: int) -> None:
    image = noisy(320, 240)
    draw_counter(image, counter)
    assert read_counter(through_jpeg(image, quality)) == counter


@given(st.integers(0, 2**32 - 1), st.integers(64, 500), st.integers(64, 400))
def test_any_size_of_frame(counter: int, width: int, height: int) -> None:
    image = noisy(width, height)
    draw_counter(image, counter)
    assert read_counter(image) == counter


@pytest.mark.parametrize("size", [(320, 240), (224, 224), (1280, 960)])
def test_it_survives_scaling(size: tuple[int, int]) -> None:
    image = noisy(640, 480)
    draw_counter(image, 0xDEADBEEF)
    assert read_counter(cv2.resize(image, size, interpolation=cv2.INTER_AREA)) == 0xDEADBEEF


def test_a_gray_and_dim_picture_will_do() -> None:
    image = noisy(640, 480)
    draw_counter(image, 77)
    assert read_counter(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY) // 3) == 77


def test_it_wraps_at_32_bits() -> None:
    image = noisy(640, 480)
    draw_counter(image, 2**32 + 5)
    assert read_counter(image) == 5


@given(st.integers(0, 10_000))
def test_noise_has_no_counter(seed: int) -> None:
    assert read_counter(noisy(128, 96, seed)) is None


@pytest.mark.parametrize("shape", [(1, 1, 3), (480, 640, 3), (30, 640), (480, 40, 3)])
def test_a_blank_or_tiny_picture_has_none(shape: tuple[int, ...]) -> None:
    assert read_counter(np.zeros(shape, dtype=np.uint8)) is None
