"""The kernel's process: ``axon run`` becomes this, so that reading its arguments costs no memory later."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec
import uvloop

import cognets
from axon.options import LOCKED, RunOptions
from axon.report import error_lines, unforeseen
from capsule.errors import AxonError
from runtime.abi.errors import SessionLocked
from runtime.abi.summary import Summary
from runtime.durable.files import write_durable
from runtime.kernel.console import Console
from runtime.kernel.kernel import Kernel
from runtime.kernel.setup import Asked, Setup
from runtime.mqtt.broker import BrokerPlan, plan

PR_SET_PDEATHSIG = 1
SHIPPED_COGNETS = Path(cognets.__file__).parent


async def _inline_brain(link: Any, pages: Any, cognet_path: str) -> None:
    """The brain in this process, for debugging; imported only then."""
    from runtime.brain.brain import run_brain

    await run_brain(link, pages, cognet_path=cognet_path)


def _asked(options: RunOptions) -> Asked:
    return Asked(
        folder=Path(options.folder),
        session=options.session,
        sandbox=options.sandbox,
        inline=options.inline,
        volatile_data=options.volatile_data,
        profile=options.profile,
        drivers=options.drivers,
        brain=options.brain,
        command=options.command,
        engine=options.engine,
    )


def _end_with(command: int) -> None:
    """A kernel that was started for one command ends in order when that is gone, however it went."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != command:
        sys.exit(1)  # it ended before the signal was set


def _pin(setup: Setup) -> None:
    """The kernel's cores, before its threads exist; children begin with the same ones."""
    cores = setup.profile.cores.usable("kernel", os.sched_getaffinity(0))
    if cores:
        os.sched_setaffinity(0, cores)


async def _run(setup: Setup, broker: BrokerPlan, options: RunOptions, console: Console) -> tuple[Summary, bool]:
    """The summary, and whether the run was what was asked for."""
    status = [sys.executable, "-P", "-m", "axon.status", str(options.folder)]
    kernel = Kernel(
        setup,
        broker,
        console=console,
        inline_brain=_inline_brain if options.inline else None,
        observers=[("status", status)] if options.status else [],
    )
    summary = await kernel.run(options.for_s)
    return summary, kernel.failure is None and (kernel.brain.loaded or not options.brain)


def _run_to_its_end(options: RunOptions, console: Console) -> int:
    setup = Setup(_asked(options), shipped_cognets=SHIPPED_COGNETS)
    _pin(setup)
    wanted = setup.agent.broker
    broker = plan(wanted.url, setup.data / "broker", ca_file=wanted.ca_file, version=wanted.protocol)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        summary, well = runner.run(_run(setup, broker, options, console))
    if options.summary:
        write_durable(Path(options.summary), msgspec.json.format(msgspec.json.encode(summary)) + b"\n")
    if not options.command:
        console.say(f"[kernel] ended in order; session {summary.session} has {summary.last_seq} entries")
    if not well and summary.brain != "up":
        console.say(f"[kernel] the brain never ran: {summary.brain}")
    return 0 if well else 1


def main() -> int:
    """Run one agent as the JSON argument says; exit status 1 when something named went wrong."""
    options = msgspec.json.decode(sys.argv[1], type=RunOptions)
    if options.command:
        _end_with(options.command)
    console = Console(has_view=options.status and sys.stdout.isatty() and sys.stderr.isatty())
    try:
        return _run_to_its_end(options, console)
    except AxonError as error:
        if options.command and isinstance(error, SessionLocked):
            return LOCKED
        console.say(error_lines(error))
        return 1
    except OSError as error:
        console.say(error_lines(unforeseen(error)))
        return 1
    finally:
        console.close()


if __name__ == "__main__":
    sys.exit(main())
