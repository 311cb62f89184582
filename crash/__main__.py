"""``make crash``: what a power cut could leave of the product's writing, state by state, each recovered and checked.

``python -m crash [N]`` boots on at least N distinct states. One JSON object alone on stdout, progress on stderr. Files
of states that broke a promise are kept below ``build/crash``.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import msgspec

from crash.campaign import Result, campaign
from crash.scenarios.table import SCENARIOS

KEPT = Path(__file__).resolve().parent.parent / "build" / "crash"


def say(line: str) -> None:
    """Progress, for whoever waits."""
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Exit 1 when anything acknowledged was lost, anything was corrupt, or a control wasn't found out."""
    asked = argparse.ArgumentParser(prog="python -m crash", description=__doc__)
    asked.add_argument("states", type=int, nargs="?", default=100_000, metavar="N")
    asked.add_argument("--seed", type=int, default=int(time.time()), help="of the choices, not of clocks and threads")
    asked.add_argument("--workers", type=int, default=min(os.cpu_count() or 1, 8), help="processes")
    asked.add_argument("--only", choices=list(SCENARIOS), help="one scenario, and no control")
    options = asked.parse_args()
    result: Result = campaign(
        options.states, seed=options.seed, workers=options.workers, keep=KEPT, say=say, only=options.only
    )
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(result)) + b"\n")
    return 0 if result.good or (options.only and not result.lost and not result.corrupt) else 1


if __name__ == "__main__":
    sys.exit(main())
