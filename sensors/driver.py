"""The loop that every driver shares: a source captured in a thread, an outbox that keeps being connected."""

from __future__ import annotations

import asyncio

from capsule.errors import AxonError
from runtime.abi.ids import uuid7
from runtime.mqtt.client import keep_connected
from sensors.capture import Capture, Stimulus
from sensors.outbox import FAREWELL_S, Outbox
from sensors.reports import Reports
from sensors.sample import Source
from sensors.settings import DriverSettings
from sensors.spool import SpoolBounds

JOIN_S = 0.2


class Driver:
    """One start of a driver, named by its ``epoch``; made inside a running event loop."""

    def __init__(
        self, settings: DriverSettings, source: Source, *, fps: float, bounds: SpoolBounds | None = None
    ) -> None:
        self.epoch = uuid7()
        self._address = settings.broker
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._error: Exception | None = None
        self.reports = Reports(channel=settings.channel, source_id=settings.id, epoch=self.epoch)
        self.outbox = Outbox(
            agent=settings.agent,
            source_id=settings.id,
            epoch=self.epoch,
            reports=self.reports,
            channels=source.channels,
            bounds=bounds or _bounds(settings, fps),
            transient=settings.transient,
        )
        self._capture = Capture(
            source,
            fps=fps,
            epoch=self.epoch,
            source_id=settings.id,
            deliver=self._deliver,
            missed=self._missed,
            failed=self._failed,
        )
        self.reports.add_health("started", source=settings.source or "default", fps=fps, epoch=self.epoch)

    async def run(self) -> None:
        """Capture and publish until ``stop``, or until the source fails: then its error is raised."""
        connecting = asyncio.ensure_future(keep_connected(self._address, self.outbox.serve))
        ended = asyncio.ensure_future(self._ended.wait())
        self._capture.start()
        try:
            await asyncio.wait([connecting, ended], return_when=asyncio.FIRST_COMPLETED)
            self._capture.stop()
            await asyncio.to_thread(self._capture.join, JOIN_S)  # the last capture goes out as well
            self.outbox.end()
            await asyncio.wait([connecting], timeout=2 * FAREWELL_S)
        finally:
            self._capture.stop()
            for task in (connecting, ended):
                task.cancel()
            await asyncio.wait([connecting, ended])
        if self._error is not None:
            raise self._error
        if not connecting.cancelled():
            connecting.result()

    def stop(self) -> None:
        """End soon: the capture under way is the last."""
        self._ended.set()

    # -- called in the capture's thread --------------------------------------------------------------

    def _deliver(self, stimuli: list[Stimulus]) -> None:
        self._loop.call_soon_threadsafe(self.outbox.add, stimuli)

    def _missed(self, count: int) -> None:
        self._loop.call_soon_threadsafe(lambda: self.reports.add_health("late", count=count))

    def _failed(self, error: Exception) -> None:
        self._loop.call_soon_threadsafe(self._end_with, error)

    def _end_with(self, error: Exception) -> None:
        self._error = error
        what = error.code if isinstance(error, AxonError) else type(error).__name__
        self.reports.add_health("ended", error=what, why=str(error)[:200])
        self._ended.set()


def _bounds(settings: DriverSettings, fps: float) -> SpoolBounds:
    """What a transient channel didn't get out within a second is too old to be worth anything."""
    count = min(settings.spool_count, max(int(fps), 1)) if settings.transient else settings.spool_count
    return SpoolBounds(max_count=count, max_bytes=settings.spool_bytes)
