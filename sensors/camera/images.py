"""A camera that plays picture files, in the order of their names, for ever."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import ClassVar

import cv2
import msgspec
import numpy as np

from runtime.abi.envelope import MAX_BYTES, VisualEnvelope
from runtime.abi.errors import SensorInvalid, SourceUnreadable
from sensors.camera.jpeg import Quality, calm_opencv, visual
from sensors.sample import Sample, SourcePlan

SENT_AS_THEY_ARE = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG\r\n\x1a\n": "image/png"}


class ImagesOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The JPEG quality for files that are neither JPEG nor PNG; those two are sent as they are."""

    quality: Quality = 80


class ImagesCamera:
    """``images:<glob>``: one file a capture; the first is opened at once, so that a wrong glob fails at the start."""

    default_fps: ClassVar[float] = 30.0
    Options: ClassVar[type[msgspec.Struct]] = ImagesOptions

    def __init__(self, plan: SourcePlan) -> None:
        if not plan.argument:
            raise SensorInvalid("the source `images` names no files", hint='Write source = "images:frames/*.jpg".')
        calm_opencv()
        self._quality: int = plan.options.quality
        self.channels = (plan.channel,)
        found = sorted(Path(name) for name in glob.glob(plan.argument, recursive=True))
        self._paths = [path for path in found if path.is_file()]
        if not self._paths:
            raise SourceUnreadable(
                f"no file matches {plan.argument!r}",
                hint="put pictures there, or change `source` in axon.toml (relative paths begin at the agent's folder)",
            )
        self._read(self._paths[0])

    def capture(self, counter: int) -> list[Sample]:
        """The next file."""
        envelope = self._read(self._paths[(counter - 1) % len(self._paths)])
        return [Sample(channel=self.channels[0], envelope=envelope)]

    def close(self) -> None:
        """Files are not held open."""

    def _read(self, path: Path) -> VisualEnvelope:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise SourceUnreadable(f"{path} can't be read: {error.strerror}", hint="check its permissions") from error
        kind = next((kind for start, kind in SENT_AS_THEY_ARE.items() if data.startswith(start)), None)
        # Unchanged: the size of the pixels as they lie in the file, whatever the EXIF orientation says.
        mode = cv2.IMREAD_UNCHANGED if kind else cv2.IMREAD_COLOR
        image = cv2.imdecode(np.frombuffer(data, dtype=np.uint8), mode) if data else None
        if image is None:
            raise SourceUnreadable(f"{path} is no picture that can be decoded", hint="remove it or narrow the glob")
        if kind is None:
            return visual(image, self._quality)
        if len(data) > MAX_BYTES["visual"] - 4096:
            raise SourceUnreadable(
                f"{path} has {len(data)} bytes, more than a stimulus may have", hint="make the picture smaller"
            )
        return VisualEnvelope(bytes=data, kind=kind, width=image.shape[1], height=image.shape[0])
