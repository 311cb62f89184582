"""A whole campaign: every scenario in its share and every control, over a few processes, added up."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path

import msgspec

from crash.controls import CONTROLS
from crash.run import Tally, World, run, try_control
from crash.scenarios.table import SCENARIOS

JOB_STATES = 1000
"""A process is given so many at a time, so that progress is seen and the last one isn't long alone."""
MAX_EXAMPLES = 20


class Counted(msgspec.Struct, kw_only=True):
    """One scenario's figures; ``seconds`` are of one process."""

    states: int = 0
    recordings: int = 0
    acknowledged: int = 0
    lost: int = 0
    corrupt: int = 0
    seconds: float = 0.0

    def add(self, tally: Tally, *, new: int) -> None:
        """One job more, which found so many states that no other had."""
        self.states += new
        self.recordings += tally.recordings
        self.acknowledged += tally.acknowledged
        self.lost += tally.lost
        self.corrupt += tally.corrupt
        self.seconds = round(self.seconds + tally.seconds, 1)


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """``failed``: it lost or damaged something, as it must; ``example`` says what."""

    failed: bool
    states: int
    lost: int
    corrupt: int
    example: str


class Result(msgspec.Struct, kw_only=True):
    """What is printed. ``states`` are distinct by content, controls not counted among them."""

    states: int = 0
    acknowledged: int = 0
    lost: int = 0
    corrupt: int = 0
    controls_failed_as_they_must: bool = False
    controls: dict[str, Control] = {}
    scenarios: dict[str, Counted] = {}
    wrong: list[str] = []
    seed: int
    workers: int
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """Nothing was lost, nothing damaged, and every control was found out."""
        return not self.lost and not self.corrupt and self.controls_failed_as_they_must


Say = Callable[[str], None]


def campaign(wanted: int, *, seed: int, workers: int, keep: Path, say: Say, only: str | None = None) -> Result:
    """Boot on at least ``wanted`` distinct states, and try every control unless ``only`` one scenario is asked for."""
    began = time.monotonic()
    result = Result(seed=seed, workers=workers)
    digests: set[bytes] = set()
    # Each process starts from nothing: a fork would share this one's state and its locks.
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        if only is None:
            tried = {name: pool.submit(_control, name, seed) for name in CONTROLS}
            result.controls = dict(_controls(tried, say))
            result.controls_failed_as_they_must = all(control.failed for control in result.controls.values())
        number = 0
        while result.states < wanted:
            jobs = list(_jobs(wanted - result.states, only))
            running = {
                pool.submit(_scenario, name, count, seed * 1_000_003 + number + at, keep): name
                for at, (name, count) in enumerate(jobs)
            }
            number += len(jobs)
            for done in as_completed(running):
                _take(result, running[done], done.result(), digests)
                say(_progress(result, wanted, time.monotonic() - began))
    result.seconds = round(time.monotonic() - began, 1)
    return result


def _jobs(wanted: int, only: str | None) -> Iterator[tuple[str, int]]:
    """Scenarios in turn, each with its share."""
    left = {name: wanted if only else round(wanted * share) + 1 for name, (_, share) in SCENARIOS.items()}
    if only:
        left = {only: wanted}
    while left:
        for name in list(left):
            count = min(left[name], JOB_STATES)
            yield name, count
            left[name] -= count
            if left[name] <= 0:
                del left[name]


def _scenario(name: str, wanted: int, seed: int, keep: Path) -> Tally:
    os.nice(5)  # whatever else this machine does comes first
    return run(World(record=SCENARIOS[name][0]), wanted=wanted, seed=seed, keep=keep / name.replace(" ", "-"))


def _control(name: str, seed: int) -> Tally:
    return try_control(CONTROLS[name], seed=seed)


def _controls(tried: dict[str, Future[Tally]], say: Say) -> Iterator[tuple[str, Control]]:
    for name, future in tried.items():
        tally = future.result()
        failed = tally.lost + tally.corrupt > 0
        say(f"control {name}: {'failed as it must' if failed else 'NOT FOUND OUT'} ({tally.states} states)")
        example = tally.examples[0] if tally.examples else ""
        yield (
            name,
            Control(failed=failed, states=tally.states, lost=tally.lost, corrupt=tally.corrupt, example=example),
        )


def _take(result: Result, name: str, tally: Tally, digests: set[bytes]) -> None:
    before = len(digests)
    digests |= tally.digests
    new = len(digests) - before
    result.states += new
    result.acknowledged += tally.acknowledged
    result.lost += tally.lost
    result.corrupt += tally.corrupt
    result.scenarios.setdefault(name, Counted()).add(tally, new=new)
    room = MAX_EXAMPLES - len(result.wrong)
    result.wrong += [f"{name}: {example}" for example in tally.examples[:room]]


def _progress(result: Result, wanted: int, seconds: float) -> str:
    rate = result.states / max(seconds, 0.001)
    return f"{result.states} of {wanted} states, {rate:.0f} a second, lost {result.lost}, corrupt {result.corrupt}"
