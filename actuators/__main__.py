"""``python -m actuators DRIVER [JSON]``: run one driver until SIGTERM, or until the parent in its settings ends."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading

from actuators.driver import Driver
from actuators.hardware import Hardware
from actuators.parent import end_with
from actuators.settings import DRIVERS, DriverSettings, open_hardware, read_settings
from capsule.errors import AxonError
from runtime.abi.errors import ActuatorInvalid

REFUSED = 2
END_S = 0.9


def main(arguments: list[str]) -> int:
    """The exit code: 0 when asked to end, 2 with one line on stderr when the settings or the device are wrong."""
    try:
        settings = _settings(arguments)
        hardware = open_hardware(arguments[0], settings)
        asyncio.run(_drive(settings, hardware))
    except AxonError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return REFUSED
    return 0


def _settings(arguments: list[str]) -> DriverSettings:
    if not 1 <= len(arguments) <= 2:
        raise ActuatorInvalid(
            "a driver is started with its name and its settings",
            hint=f"python -m actuators {{{','.join(DRIVERS)}}} JSON, or the JSON on standard input",
        )
    return read_settings(arguments[1] if len(arguments) == 2 else sys.stdin.buffer.read())


async def _drive(settings: DriverSettings, hardware: Hardware) -> None:
    driver = Driver(settings, hardware)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _end, driver)
    if settings.parent is not None and not end_with(settings.parent):
        driver.end("its parent is gone")
    await driver.run()


def _end(driver: Driver) -> None:
    """The safe action at once; then end in order, and in any case soon."""
    driver.end("it is asked to end")
    last_resort = threading.Timer(END_S, os._exit, (0,))
    last_resort.daemon = True
    last_resort.start()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
