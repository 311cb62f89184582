"""What reflex knows: a projection of the session log, and nothing else.

Folding the log from its beginning, or a checkpoint and what came after it, gives the same model.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from runtime.abi.entries import Entry
from runtime.abi.payloads import FieldOutput, FieldStimulus, TextOutput, TextStimulus

MEMORY = 1 / 64
"""How much a new reading weighs in the moving mean and variance."""
LEARNING = 32
"""A channel must have shown this many readings before one of them can be surprising."""
SURPRISE_SIGMAS = 3.0
MIN_DEVIATION = 1e-3
BIAS = "bias"
"""The output channel on which a deliberation tells its result; folding it is how later wakes come to use it."""
STIMULUS = "cognet:stimulus:"
OUTPUT = "cognet:output:"


@dataclass
class Sense:
    """One channel: how much came, and for readings the last one with its moving mean and variance."""

    count: int = 0
    last: float | None = None
    mean: float = 0.0
    variance: float = 0.0
    readings: int = 0

    @property
    def deviation(self) -> float:
        """How far the last reading lies from the moving mean, in standard deviations; 0 while still learning."""
        if self.last is None or self.readings <= LEARNING:
            return 0.0
        floor = max(MIN_DEVIATION, abs(self.mean) * MIN_DEVIATION)
        return (self.last - self.mean) / max(math.sqrt(self.variance), floor)

    def take(self, value: float) -> float:
        """Fold one reading; returns its deviation from what was known before it."""
        self.last = value
        self.readings += 1
        deviation = self.deviation
        weight = max(MEMORY, 1 / self.readings)
        difference = value - self.mean
        self.mean += weight * difference
        self.variance = (1 - weight) * (self.variance + weight * difference * difference)
        return deviation


@dataclass(frozen=True)
class Novelty:
    """Something worth a thought."""

    seq: int
    channel: str
    what: str


@dataclass
class Model:
    """Everything reflex knows, up to ``seq``."""

    seq: int = 0
    senses: dict[str, Sense] = field(default_factory=dict)
    outputs: dict[str, int] = field(default_factory=dict)
    bias: float = 0.0
    thought: str = ""

    def fold(self, entries: Iterable[Entry]) -> list[Novelty]:
        """Take entries newer than ``seq``, in order; returns what was new in them."""
        found = []
        for entry in entries:
            kind = entry.type
            if kind.startswith(STIMULUS):
                novelty = self._sense(entry)
                if novelty is not None:
                    found.append(novelty)
            elif kind.startswith(OUTPUT):
                self._remember(entry)
            self.seq = entry.time.seq
        return found

    def _sense(self, entry: Entry) -> Novelty | None:
        data: Any = entry.data
        channel = data.source.channel
        sense = self.senses.setdefault(channel, Sense())
        sense.count += 1
        if isinstance(data, FieldStimulus) and isinstance(data.reading.value, int | float):
            deviation = sense.take(float(data.reading.value))
            if abs(deviation) >= SURPRISE_SIGMAS:
                return Novelty(entry.time.seq, channel, f"{data.reading.value:g} is {deviation:+.1f} sigma off")
        if isinstance(data, TextStimulus):
            return Novelty(entry.time.seq, channel, f"somebody said: {data.content[:80]}")
        return Novelty(entry.time.seq, channel, "it speaks for the first time") if sense.count == 1 else None

    def _remember(self, entry: Entry) -> None:
        """Reflex's own outputs come back through the log like everything else."""
        data: Any = entry.data
        self.outputs[data.channel] = self.outputs.get(data.channel, 0) + 1
        if isinstance(data, FieldOutput) and data.channel == BIAS and isinstance(data.reading.value, int | float):
            self.bias = float(data.reading.value)
        elif isinstance(data, TextOutput):
            self.thought = data.content

    @property
    def steer(self) -> float:
        """Where to steer, -1 to 1: a reflex to what deviates now, on top of the bias that thinking left."""
        pull = sum(math.tanh(sense.deviation / SURPRISE_SIGMAS) for sense in self.senses.values())
        return max(-1.0, min(1.0, self.bias + 0.1 * pull))

    def to_checkpoint(self) -> dict[str, Any]:
        """A copy as plain values."""
        return asdict(self)

    @classmethod
    def from_checkpoint(cls, saved: Any) -> Model:
        """The model that was saved; an empty one when there is none or it is of another shape."""
        try:
            return cls(**{**saved, "senses": {name: Sense(**each) for name, each in saved["senses"].items()}})
        except (TypeError, KeyError, AttributeError):
            return cls()  # a cache: what can't be read is rebuilt from the log
