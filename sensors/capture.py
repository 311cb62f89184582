"""The thread that captures: it keeps the rhythm and numbers what comes, whatever the connection does meanwhile."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

import msgspec

from runtime.abi.clock import wall_ms
from runtime.abi.envelope import encode
from runtime.abi.payloads import Captured
from sensors.deadlines import Deadlines
from sensors.sample import Sample, Source
from sensors.spool import Spooled


class Stimulus(msgspec.Struct, frozen=True, kw_only=True):
    """One encoded stimulus of a channel."""

    channel: str
    kind: str
    item: Spooled


class Capture:
    """Captures until stopped. The callbacks are called in its thread and must not block.

    ``failed`` gets the error that ended it; nothing more is captured after that.
    """

    def __init__(
        self,
        source: Source,
        *,
        fps: float,
        epoch: str,
        source_id: str | None,
        deliver: Callable[[list[Stimulus]], None],
        missed: Callable[[int], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._source = source
        self._period_s = 1 / fps
        self._epoch = epoch
        self._source_id = source_id
        self._deliver, self._missed, self._failed = deliver, missed, failed
        self._stop = threading.Event()
        self._counters: Counter[str] = Counter()
        # A daemon: a device that hangs must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="capture", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end; the capture under way is finished and delivered."""
        self._stop.set()

    def join(self, timeout_s: float) -> None:
        """Wait for the end, no longer than that."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            self._keep_capturing()
        except Exception as error:  # noqa: BLE001  # whatever it is, the driver's main thread raises it
            self._failed(error)
        finally:
            self._source.close()

    def _keep_capturing(self) -> None:
        deadlines, number = Deadlines(start=time.monotonic(), period_s=self._period_s), 0
        while True:
            due, missed = deadlines.next(time.monotonic())
            if missed:
                self._missed(missed)
            if self._stop.wait(max(due - time.monotonic(), 0)):
                return
            number += 1
            samples = self._source.capture(number)
            self._deliver([self._numbered(sample) for sample in samples])

    def _numbered(self, sample: Sample) -> Stimulus:
        self._counters[sample.channel] += 1
        seq = self._counters[sample.channel]
        captured = Captured(epoch=self._epoch, ms=wall_ms(), seq=seq)
        envelope = msgspec.structs.replace(sample.envelope, id=self._source_id, captured=captured)
        item = Spooled(seq=seq, payload=encode(envelope))
        return Stimulus(channel=sample.channel, kind=sample.kind, item=item)
