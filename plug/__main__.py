"""``make plug [N=200]``: pull the plug on the real product in a virtual machine; one JSON object on standard output.

Of N cuts a tenth are on an arm64 guest, a tenth while a boot recovers from the cut before, and the rest while the
product runs on amd64. After every ``BASE_EVERY`` cuts the machine boots from the disk of the last one and goes on from
there. Apart from those, some cuts on disks that ignore a share of their flushes show what such cards lose.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import msgspec

from plug.campaign import Campaign, Cuts, Frozen, progress, say
from plug.controls import controls
from plug.guest import Missing, guest

BASE_EVERY = 40
IGNORED = (0.1, 0.3)
IGNORED_CUTS = 10


def main() -> int:
    """Exit 1 when anything acknowledged was lost, anything was corrupt, or a control didn't fail."""
    asked = argparse.ArgumentParser(prog="python -m plug", description=__doc__)
    asked.add_argument("--cuts", type=int, default=200, metavar="N")
    asked.add_argument("--seed", type=int, default=int(time.time()), help="repeats the moments, not the machine")
    asked.add_argument("--only", choices=("amd64", "arm64"), help="one kind of guest")
    options = asked.parse_args()
    began = time.monotonic()
    try:
        result = _campaigns(options.cuts, options.seed, options.only)
    except Missing as error:
        say(f"this machine lacks what pulls the plug: {error}")
        return 2
    result |= {"seconds": round(time.monotonic() - began), "seed": options.seed}
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(result)) + b"\n")
    good = not result["lost"] and not result["corrupt"] and result["controls_failed_as_they_must"]
    return 0 if good else 1


def _campaigns(cuts: int, seed: int, only: str | None) -> dict[str, Any]:
    tenth = max(1, cuts // 10)
    on_arm = 0 if only == "amd64" else cuts if only == "arm64" else tenth if cuts > 1 else 0
    in_recovery = min(tenth, cuts - on_arm)
    kinds: dict[str, Cuts] = {}
    failed: dict[str, bool] = {}
    ignored: dict[str, Cuts] = {}
    if on_arm:
        campaign = Campaign(guest("arm64"), seed=seed)
        kinds["arm64"] = _running(campaign, campaign.begin(), on_arm, "arm64")[0]
        campaign.close()
    if cuts > on_arm:
        campaign = Campaign(guest("amd64"), seed=seed)
        kinds["amd64"], last = _running(campaign, campaign.begin(), cuts - on_arm - in_recovery, "amd64")
        kinds["amd64 in recovery"] = _recovering(campaign, last, in_recovery)
        for share in IGNORED:
            ignored[f"{share:.0%}"] = _ignoring(campaign, last, share, min(IGNORED_CUTS, cuts))
        failed = controls(campaign, last, seed=seed)
        campaign.close()
    return {
        "cuts": sum(kind.cuts for kind in kinds.values()),
        "acknowledged": sum(kind.acknowledged for kind in kinds.values()),
        "lost": sum(kind.lost for kind in kinds.values()),
        "corrupt": sum(kind.corrupt for kind in kinds.values()),
        "controls_failed_as_they_must": all(failed.values()),
        "controls": failed,
        "kinds": kinds,
        "disks_that_ignore_flushes": ignored,
    }


def _running(campaign: Campaign, frozen: Frozen, cuts: int, what: str) -> tuple[Cuts, Frozen]:
    """The cuts, and the state that the last of them started from."""
    counted, image, lines = Cuts(), bytearray(), list[str]()
    began = time.monotonic()
    for number in range(cuts):
        if number and number % BASE_EVERY == 0:
            frozen = campaign.go_on(image, lines)
        image, lines, verdict = campaign.cut_running(frozen)
        counted.add(verdict)
        progress(counted, what, began)
    return counted, frozen


def _recovering(campaign: Campaign, frozen: Frozen, cuts: int) -> Cuts:
    """A cut, and then cuts while boot after boot recovers."""
    counted, began = Cuts(), time.monotonic()
    image, lines, _ = campaign.cut_running(frozen)
    for _ in range(cuts):
        image, lines, verdict = campaign.cut_recovering(image, lines)
        counted.add(verdict)
        progress(counted, "in recovery", began)
    return counted


def _ignoring(campaign: Campaign, frozen: Frozen, share: float, cuts: int) -> Cuts:
    """Nothing is promised here: what such a disk loses is shown."""
    counted, began = Cuts(), time.monotonic()
    for _ in range(cuts):
        _, _, verdict = campaign.cut_running(frozen, ignored=share, at_least_s=1.0)
        counted.add(verdict)
        progress(counted, f"{share:.0%} of flushes ignored", began)
    return counted


if __name__ == "__main__":
    sys.exit(main())
