"""The kernel's process: ``axon run`` becomes this, so that what it needed to read its arguments isn't kept in memory."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import uvloop

import cognets
from axon.options import RunOptions
from capsule.errors import AxonError
from runtime.abi.summary import Summary
from runtime.durable.files import write_durable
from runtime.kernel.console import Console
from runtime.kernel.kernel import Kernel
from runtime.kernel.setup import Asked, Setup
from runtime.mqtt.broker import plan

SHIPPED_COGNETS = Path(cognets.__file__).parent


async def _inline_brain(link: Any, pages: Any, cognet_path: str) -> None:
    """The brain in this process, for debugging; imported only then."""
    from runtime.brain.process import run_brain

    await run_brain(link, pages, cognet_path=Path(cognet_path))


async def _run(setup: Setup, options: RunOptions, console: Console) -> Summary:
    broker = plan(setup.agent.broker, setup.data / "broker")
    status = [sys.executable, "-m", "axon.status", str(options.folder)]
    kernel = Kernel(
        setup,
        broker,
        console=console,
        inline_brain=_inline_brain if options.inline else None,
        observers=[("status", status)] if options.status else [],
    )
    return await kernel.run(options.for_s)


def _pin(setup: Setup) -> None:
    """The kernel's cores, before any thread exists; children begin with the same ones."""
    cores = setup.profile.cores.usable("kernel", os.sched_getaffinity(0))
    if cores:
        os.sched_setaffinity(0, cores)


def main() -> int:
    """Run one agent as the JSON argument says."""
    options = msgspec.json.decode(sys.argv[1], type=RunOptions)
    console = Console()
    try:
        setup = Setup(
            Asked(
                folder=Path(options.folder),
                session=options.session,
                sandbox=options.sandbox,
                inline=options.inline,
                volatile_data=options.volatile_data,
                profile=options.profile,
            ),
            shipped_cognets=SHIPPED_COGNETS,
        )
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            summary = runner.run(_run(setup, options, console))
    except AxonError as error:
        console.say(str(error))
        return 1
    finally:
        console.close()
    if options.summary:
        write_durable(Path(options.summary), msgspec.json.format(msgspec.json.encode(summary)) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
