"""Telemetry: what the machine narrates about itself; another table than the entries, never in a cognet's reach."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from runtime.abi.errors import EntryInvalid, EntryTypeUnknown


class _Facts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What every telemetry payload has in common."""


class Span(_Facts, frozen=True, kw_only=True):
    """A beginning or an end of a tick, phase or system; ``span`` numbers it, ``parent`` the one around it.

    ``took_us`` stands on ends only; ``error`` on ``failed`` only.
    """

    name: Annotated[str, Meta(max_length=128)] = ""
    span: int
    parent: int | None = None
    tick: int = 0
    took_us: int | None = None
    error: Annotated[str, Meta(max_length=2000)] | None = None


class LogLine(_Facts, frozen=True, kw_only=True):
    """A cognet's own diagnostic line."""

    message: Annotated[str, Meta(max_length=8000)]
    facts: dict[str, Any] = {}


class Loaded(_Facts, frozen=True, kw_only=True):
    """What came of loading a cognet."""

    name: str
    took_us: int = 0
    error: str | None = None


class KnowledgeChanged(_Facts, frozen=True, kw_only=True):
    """An entry of the agent's knowledge was written or removed: its name, never its content; ``by`` a person, or ""."""

    name: Annotated[str, Meta(max_length=1024)]
    by: Annotated[str, Meta(max_length=256)] = ""


class WakeAdmitted(_Facts, frozen=True, kw_only=True):
    """A wake began: ``late_us`` from its due time to the first line of the loop; ``overlap`` wakes open."""

    ordinal: int
    late_us: int | None = None
    overlap: int


class WakeSettled(_Facts, frozen=True, kw_only=True):
    """A wake ended; ``outcome`` is ``complete``, ``failed`` or ``interrupted``."""

    ordinal: int
    outcome: str
    ticks: int
    took_us: int
    error: str | None = None


class WakesMissed(_Facts, frozen=True, kw_only=True):
    """Periods that a clock skipped whole, or an admission that had to wait for ``max_overlap``."""

    count: int
    reason: str


class ProcessChanged(_Facts, frozen=True, kw_only=True):
    """A child process started, ended or was ended."""

    name: str
    pid: int | None = None
    exit_code: int | None = None
    reason: str = ""
    restarts: int = 0


class Refused(_Facts, frozen=True, kw_only=True):
    """Input from outside that wasn't admitted; ``count`` since the last report of this kind."""

    code: str
    channel: str = ""
    count: int = 1
    example: Annotated[str, Meta(max_length=500)] = ""


class Gap(_Facts, frozen=True, kw_only=True):
    """Stimuli that never came: the driver's counters ``first`` to ``last``; ``told`` if the driver said so."""

    channel: str
    source: str = ""
    epoch: str = ""
    first: int
    last: int
    told: bool = False


class Storage(_Facts, frozen=True, kw_only=True):
    """The log's storage changed its state; ``state`` is ``ok``, ``full``, ``recovering`` or ``failed``."""

    state: str
    reason: str = ""
    durable_seq: int = 0


class Health(_Facts, frozen=True, kw_only=True):
    """A fact about a sensor that only its driver can see."""

    channel: str
    state: str
    facts: dict[str, Any] = {}


class TransientStimulus(_Facts, frozen=True, kw_only=True):
    """A stimulus of a transient channel, which no log keeps."""

    channel: str
    kind: str


class Commanded(_Facts, frozen=True, kw_only=True):
    """A value went out to an actuator; ``asked`` where a limit changed it, ``seq`` of the output (0: a tool's call)."""

    actuator: str
    value: bool | float
    asked: bool | float | None = None
    seq: int = 0
    id: str = ""


class EngineSpan(_Facts, frozen=True, kw_only=True):
    """A request to an engine, without its words; ``span`` numbers it in this kernel boot.

    ``waited_us`` is the time in the queue, ``ttft_ms`` from its turn to the first piece, ``took_us`` from being asked
    to the end, ``tokens_per_s`` from the first piece to the end; ``error`` is a failure's code. They stand on ends.
    """

    role: str
    span: int
    kind: str
    waited_us: int | None = None
    ttft_ms: float | None = None
    took_us: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    generated_tokens: int | None = None
    tokens_per_s: float | None = None
    error: str | None = None


class RunSpan(_Facts, frozen=True, kw_only=True):
    """A block in the capsule, without its code; ``block`` is the id of its action. The rest stands on ends.

    ``took_us`` is from the start, which the action's commit came before, to the result; ``error`` its kind.
    """

    block: str
    took_us: int | None = None
    error: str | None = None


class PolicyDecided(_Facts, frozen=True, kw_only=True):
    """What became of a tool's call: ``approval`` is its id where a person was asked, ``by`` who answered.

    ``count`` is above 1 where refusals are told in a sum.
    """

    name: str
    rule: str = ""
    reason: str = ""
    arguments: dict[str, Any] = {}
    block: str = ""
    by: str = ""
    approval: str = ""
    count: int = 1


class Fact(_Facts, frozen=True, kw_only=True):
    """Anything else of the kernel's, by name."""

    message: str = ""
    facts: dict[str, Any] = {}


SPAN_STATES = ("start", "complete", "failed", "interrupted")
TELEMETRY_CLASSES: dict[str, type[msgspec.Struct]] = {
    **{f"cognet:{family}:{state}": Span for family in ("tick", "phase", "system") for state in SPAN_STATES},
    **{f"cognet:log:{level}": LogLine for level in ("debug", "info", "warning", "error")},
    "cognet:load:complete": Loaded,
    "cognet:load:failed": Loaded,
    "cognet:knowledge:write": KnowledgeChanged,
    "cognet:knowledge:remove": KnowledgeChanged,
    **{f"kernel:run:{state}": RunSpan for state in SPAN_STATES},
    "kernel:boot": Fact,
    "kernel:shutdown": Fact,
    "kernel:session:opened": Fact,
    "kernel:sandbox:checked": Fact,
    "kernel:wake:admitted": WakeAdmitted,
    "kernel:wake:settled": WakeSettled,
    "kernel:wake:missed": WakesMissed,
    "kernel:process:started": ProcessChanged,
    "kernel:process:ended": ProcessChanged,
    "kernel:process:killed": ProcessChanged,
    "kernel:ingest:refused": Refused,
    "kernel:ingest:gap": Gap,
    "kernel:ingest:transient": TransientStimulus,
    "kernel:command:refused": Refused,
    "kernel:actuator:commanded": Commanded,
    "kernel:actuator:refused": Refused,
    "kernel:actuator:state": Health,
    "kernel:link:refused": Refused,
    **{f"kernel:engine:{state}": EngineSpan for state in SPAN_STATES},
    "kernel:log:storage": Storage,
    "kernel:log:sealing": Fact,
    "kernel:log:retired": Fact,
    "kernel:telemetry:dropped": Fact,
    "kernel:policy:denied": PolicyDecided,
    "kernel:policy:escalated": PolicyDecided,
    "kernel:policy:approved": PolicyDecided,
    "kernel:policy:expired": PolicyDecided,
    "kernel:stop:latched": Fact,
    "kernel:stop:cleared": Fact,
    "sensor:gap": Gap,
    "sensor:health": Health,
}
COGNET_MAY_EMIT = ("cognet:phase:", "cognet:system:", "cognet:log:")


class TelemetryEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event: ``after_seq`` is the last entry admitted before it; ``data`` fits ``TELEMETRY_CLASSES[type]``."""

    type: str
    mono_us: int
    after_seq: int = 0
    wake_id: str | None = None
    data: Any = None


def check(type_: str, data: object) -> msgspec.Struct:
    """Validate the data of one event, once, where it enters."""
    kind = TELEMETRY_CLASSES.get(type_)
    if kind is None:
        raise EntryTypeUnknown(f"there is no telemetry type {type_!r}", type=type_)
    if type(data) is kind:
        return data
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise EntryInvalid(f"{type_}: {error}", type=type_) from error
