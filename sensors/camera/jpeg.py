"""Encoding pixels as JPEG, and OpenCV kept to one thread and quiet."""

from __future__ import annotations

import os
from typing import Annotated, Any

import msgspec
import numpy.typing as npt

from runtime.abi.envelope import VisualEnvelope

os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")  # read once, when OpenCV loads: its complaints are not ours

import cv2

Pixels = npt.NDArray[Any]  # 8 bits a channel, which OpenCV's own types leave open
Quality = Annotated[int, msgspec.Meta(ge=1, le=100)]
Side = Annotated[int, msgspec.Meta(ge=64, le=8192)]


def calm_opencv() -> None:
    """One thread (frames are small, the board has other work) and no log on stderr."""
    cv2.setNumThreads(1)
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)


def visual(image: Pixels, quality: int) -> VisualEnvelope:
    """The envelope of one frame (BGR), encoded as JPEG."""
    _, data = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])
    height, width = image.shape[:2]
    return VisualEnvelope(bytes=data.tobytes(), kind="image/jpeg", width=width, height=height)
