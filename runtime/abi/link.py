"""The messages between kernel and brain, as msgpack frames over one socket pair, and the page requests over another."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

from capsule.scope import AxonScope
from runtime.abi.engines import EngineFacts
from runtime.abi.errors import WireError
from runtime.abi.telemetry import TelemetryEvent

LINK_PROTOCOL = "axon-link/1"
PAGE_PROTOCOL = "axon-pages/1"
PAGE_ENTRIES = 256
ABI_VERSION = "1"


Small = Annotated[int, Meta(ge=0, le=2**31)]
Micros = Annotated[int, Meta(ge=0, le=2**53)]
Place = Annotated[int, Meta(ge=0, le=2**53)]
"""What a brain may claim: bounds that keep a hostile one's numbers out of the kernel's own."""


class _Message(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """What every message has in common."""


# -- kernel to brain -------------------------------------------------------------------------------


class Welcome(_Message, frozen=True):
    """The brain's whole situation, sent once after both hellos, before the first entries."""

    agent_id: str
    session_id: str
    boot_id: str
    mode: str  # "continuous" or "invocation"
    wake_on: list[str]
    max_ticks_per_wake: int
    store: dict[str, str]  # declared keys and their types
    wakes: int  # admitted so far in this kernel boot
    last_seq: int  # the log's end: a continuous brain's cursor begins here
    first_seq: int  # the oldest entry still readable
    settled_seq: int  # invocation: answered up to here
    window_entries: int
    heartbeat_s: float
    max_overlap: int
    cognet: str  # the name of the cognet
    cognet_path: str  # the folder of the cognet, as the brain sees it
    scope: AxonScope = AxonScope()  # what the capsule can execute now
    engines: list[EngineFacts] = []  # the roles that the cognet declares


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One entry as it lies in the log; ``seq`` 0 marks a transient one."""

    seq: int
    type: str
    body: bytes


class Entries(_Message, frozen=True):
    """Entries in the order of their admission."""

    rows: list[Row]


class Reply(_Message, frozen=True):
    """The end of the call of that number: a value, or an error; ``rows`` were admitted before it, as in ``Entries``."""

    call: int
    value: Any = None
    error: WireError | None = None
    rows: list[Row] = []


class Part(_Message, frozen=True):
    """A piece of the answer to the call of that number; its ``Reply`` follows the last one."""

    call: int
    value: Any = None


class Scoped(_Message, frozen=True):
    """What the capsule can execute has changed."""

    scope: AxonScope


class Engines(_Message, frozen=True):
    """The facts of the roles have changed: all of them, as they are now."""

    engines: list[EngineFacts]


class Retired(_Message, frozen=True):
    """Entries before ``first_seq`` can't be read any more: the log keeps within its bounds."""

    first_seq: int


class Stop(_Message, frozen=True):
    """Shut down: admit no wake, interrupt the open ones, run the shutdown hooks, then say ``Stopped``."""

    grace_s: float


FromKernel: TypeAlias = Welcome | Entries | Retired | Reply | Part | Scoped | Engines | Stop

# -- brain to kernel -------------------------------------------------------------------------------


class Loaded(_Message, frozen=True):
    """The cognet is loaded and its boot hooks are done; ``folded`` entries were read through the store."""

    folded: Small
    took_us: Micros


class LoadFailed(_Message, frozen=True):
    """The cognet can't be loaded; the brain ends after this."""

    error: WireError


class Call(_Message, frozen=True):
    """A verb that wants a reply; ``cursor`` is what the calling tick had seen."""

    call: int
    verb: str  # such as "output", "store.get", "run"
    args: list[Any]
    wake_id: str | None = None
    cursor: int | None = None


class Cancel(_Message, frozen=True):
    """Nobody waits for the reply to that call any more; its ``Reply`` comes all the same."""

    call: int


class Admitted(_Message, frozen=True):
    """A wake began in the brain; the kernel is told, not asked. ``late_us`` is None when nothing was due."""

    wake_id: str
    ordinal: Small
    late_us: Micros | None
    overlap: Small


class Ended(_Message, frozen=True):
    """A wake ended: ``outcome`` is ``complete``, ``failed`` or ``interrupted``; ``upto_seq`` what it had seen."""

    wake_id: str
    ordinal: Small
    outcome: str
    ticks: Small
    took_us: Micros
    upto_seq: Place
    error: str | None = None


class Missed(_Message, frozen=True):
    """Periods a clock skipped, or admissions that waited."""

    count: Small
    reason: str  # "clock" or "overlap"


class Told(_Message, frozen=True):
    """Telemetry of the brain, in its order."""

    events: list[TelemetryEvent]


class Heartbeat(_Message, frozen=True):
    """The brain's loop turns."""

    mono_us: Micros


class Stopped(_Message, frozen=True):
    """The shutdown hooks are done."""


FromBrain: TypeAlias = Loaded | LoadFailed | Call | Cancel | Admitted | Ended | Missed | Told | Heartbeat | Stopped


# -- pages, over a socket of their own: the one blocking call ------------------------------------------


class PageRequest(msgspec.Struct, frozen=True, array_like=True):
    """Entries after that ``seq``, at most ``limit``, none above ``upto``."""

    after: int
    upto: int
    limit: int = PAGE_ENTRIES


class Page(msgspec.Struct, frozen=True, array_like=True):
    """A JSON array of bodies with consecutive ``seq`` from ``first_seq``; ``count`` of them, 0 at the end."""

    first_seq: int
    count: Small
    bodies: bytes = b"[]"
    error: WireError | None = None
