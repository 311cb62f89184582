"""``python -m sensors DRIVER [JSON]``: run one driver until SIGTERM, or until the parent named in its settings ends."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading

from capsule.errors import AxonError
from runtime.abi.errors import SensorInvalid
from sensors.driver import Driver
from sensors.parent import die_with
from sensors.sample import Source
from sensors.settings import DRIVERS, DriverSettings, open_source, read_settings

REFUSED = 2
END_S = 0.9


def main(arguments: list[str]) -> int:
    """The exit code: 0 when asked to end, 2 with one line on stderr when the settings or the source are wrong."""
    try:
        settings = _settings(arguments)
        if settings.parent is not None and not die_with(settings.parent):
            return 0
        source, fps = open_source(arguments[0], settings)
        asyncio.run(_drive(settings, source, fps))
    except AxonError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return REFUSED
    return 0


def _settings(arguments: list[str]) -> DriverSettings:
    if not 1 <= len(arguments) <= 2:
        raise SensorInvalid(
            "a driver is started with its name and its settings",
            hint=f"python -m sensors {{{','.join(DRIVERS)}}} JSON, or the JSON on standard input",
        )
    return read_settings(arguments[1] if len(arguments) == 2 else sys.stdin.buffer.read())


async def _drive(settings: DriverSettings, source: Source, fps: float) -> None:
    driver = Driver(settings, source, fps=fps)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _end, driver)
    await driver.run()


def _end(driver: Driver) -> None:
    """End in order, and in any case soon: a broker or device that hangs must not hold the process up."""
    driver.stop()
    last_resort = threading.Timer(END_S, os._exit, (0,))
    last_resort.daemon = True
    last_resort.start()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
