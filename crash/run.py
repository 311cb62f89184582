"""Recordings of one scenario, every state of them booted on: the part of a campaign that one process does at a time."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import msgspec

from crash.cuts import State, states
from crash.disk import KINDS, Kind
from crash.promise import Found, Promise, Verdict, judge
from crash.recording import Record, Recording, lay_out
from crash.scale import scaled

MEMORY = Path("/dev/shm")
STATES_A_RECORDING = 250
"""About so many are taken from one recording, spread over all of it: many short stories rather than one long one."""
STATES_AN_OPERATION = 20
LEAST = 40
CAUGHT = 3
CONTROL_STATES = 20_000
STATES_OF_A_CONTROL = 150
"""A control has failed as it must when so many states have; without that it ends after so many."""
THOROUGH = 0.03
"""The share of states that ``axon log verify`` reads as well."""
EXAMPLES = 3


class World(msgspec.Struct, frozen=True, kw_only=True):
    """How a scenario is recorded: the product in a world as it should be, or a control in one that must lose."""

    record: Record
    changed: Callable[[], AbstractContextManager[None]] = nullcontext
    honest: bool = True
    kinds: tuple[Kind, ...] = KINDS


class Tally(msgspec.Struct, kw_only=True):
    """What was counted; ``digests`` name the states by their content."""

    states: int = 0
    acknowledged: int = 0
    lost: int = 0
    corrupt: int = 0
    recordings: int = 0
    seconds: float = 0.0
    digests: set[bytes] = msgspec.field(default_factory=set)
    examples: list[str] = msgspec.field(default_factory=list)


def run(world: World, *, wanted: int, seed: int, keep: Path | None = None) -> Tally:
    """Boot on ``wanted`` distinct states or some more; the first that are wrong are kept to be looked at."""
    tally, rng, began = Tally(), random.Random(seed), time.monotonic()
    with _scratch() as base:
        while tally.states < wanted:
            part = min(wanted - tally.states, STATES_A_RECORDING)
            _one(world, rng, base, tally, wanted=max(part, LEAST), keep=keep)
    tally.seconds = time.monotonic() - began
    return tally


def try_control(world: World, *, seed: int) -> Tally:
    """Look until something is lost: a few states of each of many recordings."""
    tally, rng, began = Tally(), random.Random(seed), time.monotonic()
    with _scratch() as base:
        while tally.lost + tally.corrupt < CAUGHT and tally.states < CONTROL_STATES:
            _one(world, rng, base, tally, wanted=STATES_OF_A_CONTROL, keep=None)
    tally.seconds = time.monotonic() - began
    return tally


def _one(world: World, rng: random.Random, base: Path, tally: Tally, *, wanted: int, keep: Path | None) -> None:
    """One recording and a share of its states."""
    tally.recordings += 1
    with scaled(rng):
        with world.changed():
            recording = world.record(_fresh(base / "record"), rng)
        known: dict[bytes, Found] = {}
        share = min(wanted / (STATES_AN_OPERATION * max(len(recording.operations), 1)), 1.0)
        for state in _states(world, recording, rng, share):
            found = known.get(state.digest)
            if found is None:
                if state.digest in tally.digests:
                    continue
                place = _fresh(base / "state")
                lay_out(state.files, state.folders, place)
                found = known[state.digest] = recording.boot(place, rng.random() < THOROUGH)
                tally.digests.add(state.digest)
                tally.states += 1
                tally.acknowledged += state.note.count
            _count(tally, judge(found, state.note), state, keep)


def _states(world: World, recording: Recording, rng: random.Random, share: float) -> Iterator[State]:
    kinds = world.kinds if recording.noise else tuple(kind for kind in world.kinds if kind != "garbage")
    return states(recording.operations, rng=rng, before=recording.before, share=share, honest=world.honest, kinds=kinds)


def _count(tally: Tally, verdict: Verdict, state: State, keep: Path | None) -> None:
    """A state may break its promise at one moment and keep that of another; it counts as often as it breaks one."""
    why = verdict.corrupt or verdict.lost
    if why is None:
        return
    tally.corrupt += verdict.corrupt is not None
    tally.lost += verdict.lost is not None
    if len(tally.examples) < EXAMPLES:
        tally.examples.append(f"{state.cut} after operation {state.operation}: {why}")
        if keep is not None:
            _keep(state, keep / state.digest.hex())


def _keep(state: State, place: Path) -> None:
    lay_out(state.files, state.folders, _fresh(place))
    promise: Promise = state.note
    (place / "promise.json").write_bytes(msgspec.json.encode(promise, enc_hook=repr))


def _fresh(place: Path) -> Path:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    return place


@contextmanager
def _scratch() -> Iterator[Path]:
    """In memory where there is such a file system: what is tested is what a sync means, not how long it takes."""
    base = Path(tempfile.mkdtemp(prefix="axon-crash-", dir=MEMORY if MEMORY.is_dir() else None))
    try:
        yield base
    finally:
        shutil.rmtree(base, ignore_errors=True)
