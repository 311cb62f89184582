"""The MQTT topics of an agent, made and read in one place."""

from __future__ import annotations

import re

from runtime.abi.entries import STIMULUS_KINDS
from runtime.abi.errors import TopicInvalid

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def stimulus(agent: str, kind: str, channel: str) -> str:
    """Where a driver publishes."""
    return f"axon/{agent}/stimulus/{kind}/{channel}"


def stimulus_filter(agent: str) -> str:
    """What the kernel subscribes to."""
    return f"axon/{agent}/stimulus/#"


def output(agent: str, kind: str, channel: str) -> str:
    """Where durable outputs go."""
    return f"axon/{agent}/output/{kind}/{channel}"


def committed(agent: str, channel: str) -> str:
    """Where the kernel confirms what is durable."""
    return f"axon/{agent}/committed/{channel}"


def sensor_report(agent: str, channel: str) -> str:
    """Where a driver reports gaps and health: ``axon/<agent>/sensor/<channel>``."""
    return f"axon/{agent}/sensor/{channel}"


def sensor_filter(agent: str) -> str:
    """Every driver's reports."""
    return f"axon/{agent}/sensor/#"


def status(agent: str) -> str:
    """Online or offline, retained, the last will.

    The kernel says ``online`` on a connection after it has subscribed there. A driver that has just connected waits
    for it before it sends: a broker that was restarted drops what nobody has subscribed to, and the first stimulus
    that does arrive then makes a hole, which moves the mark past what the driver could still have sent again.
    """
    return f"axon/{agent}/status"


def command(agent: str, name: str) -> str:
    """``interrupt``, ``stop`` or ``approve``."""
    return f"axon/{agent}/{name}"


def approval(agent: str) -> str:
    """Where the kernel tells of calls that wait for a person, and what became of them."""
    return f"axon/{agent}/approval"


def parse_stimulus(agent: str, topic: str) -> tuple[str, str]:
    """The kind and channel of a stimulus topic; ``TopicInvalid`` for any other."""
    prefix = f"axon/{agent}/stimulus/"
    kind, _, channel = topic.removeprefix(prefix).partition("/")
    if not topic.startswith(prefix) or kind not in STIMULUS_KINDS or not _NAME.fullmatch(channel):
        shown = topic[:120]
        raise TopicInvalid(
            f"the topic {shown!r} is not axon/{agent}/stimulus/<kind>/<channel>",
            hint=f"kinds are {', '.join(STIMULUS_KINDS)}; a channel has up to 64 letters, digits, '.', '-' and '_'",
        )
    return kind, channel


def actuator_command(agent: str, name: str) -> str:
    """Where an actuator hears: ``axon/<agent>/actuator/<name>/command``, never retained."""
    return f"axon/{agent}/actuator/{name}/command"


def actuator_state(agent: str, name: str) -> str:
    """Where an actuator says what it does."""
    return f"axon/{agent}/actuator/{name}/state"
