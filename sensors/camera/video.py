"""A camera that plays a video file, from its beginning again when it ends."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import cv2
import msgspec

from runtime.abi.errors import SensorInvalid, SourceUnreadable
from sensors.camera.jpeg import Pixels, Quality, calm_opencv, visual
from sensors.sample import Sample, SourcePlan


class VideoOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The JPEG quality; frames keep the size they have in the file."""

    quality: Quality = 80


class VideoCamera:
    """``video:<path>``: one frame a capture, at the driver's fps whatever rate the file names."""

    default_fps: ClassVar[float] = 30.0
    Options: ClassVar[type[msgspec.Struct]] = VideoOptions

    def __init__(self, plan: SourcePlan) -> None:
        if not plan.argument:
            raise SensorInvalid("the source `video` names no file", hint='Write source = "video:drive.mp4".')
        calm_opencv()
        self._path = Path(plan.argument)
        self._quality: int = plan.options.quality
        self.channels = (plan.channel,)
        if not self._path.is_file():
            raise SourceUnreadable(
                f"there is no file {plan.argument!r}",
                hint="correct `source` in axon.toml; a relative path begins at the agent's folder",
            )
        self._video = self._open()
        self._first: Pixels | None = self._next()
        if self._first is None:
            raise self._no_video()

    def capture(self, counter: int) -> list[Sample]:  # noqa: ARG002  # a file has its own order
        """The next frame; after the last, the first."""
        frame, self._first = self._first, None
        if frame is None:
            frame = self._next()
        if frame is None:
            frame = self._rewound()
        return [Sample(channel=self.channels[0], envelope=visual(frame, self._quality))]

    def close(self) -> None:
        """Close the file."""
        self._video.release()

    def _open(self) -> cv2.VideoCapture:
        # One decoding thread: at 30 frames a second more of them cost more than they bring.
        return cv2.VideoCapture(str(self._path), cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1])

    def _next(self) -> Pixels | None:
        ok, frame = self._video.read()
        return frame if ok else None

    def _rewound(self) -> Pixels:
        # Opened anew: seeking to frame 0 is inexact in some containers and impossible in others.
        self._video.release()
        self._video = self._open()
        frame = self._next()
        if frame is None:
            raise self._no_video()
        return frame

    def _no_video(self) -> SourceUnreadable:
        return SourceUnreadable(
            f"{str(self._path)!r} is no video that can be decoded", hint="try a file that ffmpeg plays, such as MP4"
        )
