"""The files that ``axon new cognet`` writes, by mode."""

from __future__ import annotations

_TOML = """\
# What this brain asks of the kernel; docs/configuration.md lists every key.
format = 1
abi = "1"
mode = "{mode}"
{more}
# [engines.main]              # a role, for kernel.engine("main"); axon.toml says what fills it
# type = "generate"
# in = ["text"]
# out = ["text"]

# [store]                     # a cache over the log, for kernel.store
# checkpoint = "dict"
"""

_ANSWERS = '''\
"""A brain that answers each text that reaches it."""

from __future__ import annotations

from runtime import Wake, kernel, loop, phase


@loop
async def think(wake: Wake) -> None:
    """One tick: what arrived since the last one, and an answer to each text among it."""
    async with phase("answer"):
        for stimulus in wake.stimuli:
            if stimulus.type == "cognet:stimulus:text":
                words = f"You said: {stimulus.data.content}"
                await kernel.output("cognet:output:text", {"channel": "voice", "content": words})
    wake.stop()
'''

_TELLS = '''\
"""A brain that looks at its senses at its own rhythm, and tells each reading that changed."""

from __future__ import annotations

from runtime import Wake, every, kernel, loop, on, phase

RATE_HZ = 10
known: dict[str, object] = {}
"""The newest reading of each channel. It is resident only: the log has them all, and a restart folds it again."""
seq = 0


@on("boot")
def begin() -> None:
    """Fold what the log has, then wake at fixed deadlines."""
    sync()
    every(1 / RATE_HZ, kernel.wake)


def sync() -> list[str]:
    """Fold what is new; returns the channels that changed."""
    global seq
    changed = []
    for entry in kernel.store.session.get(after=seq):
        seq = entry.time.seq
        if entry.type == "cognet:stimulus:field":
            channel, value = entry.data.source.channel, entry.data.reading.value
            if known.get(channel) != value:
                known[channel] = value
                changed.append(channel)
    return changed


@loop
async def think(wake: Wake) -> None:
    """One tick a wake."""
    async with phase("sense"):
        changed = sync()
    async with phase("tell"):
        for channel in dict.fromkeys(changed):
            words = f"{channel} is {known[channel]}"
            await kernel.output("cognet:output:text", {"channel": "voice", "content": words})
    wake.stop()
'''

FILES: dict[str, dict[str, str]] = {
    "invocation": {
        "cognet.toml": _TOML.format(
            mode="invocation", more='wake_on = ["text"]            # what wakes it: a kind, or "text:channel"\n'
        ),
        "main.py": _ANSWERS,
    },
    "continuous": {
        "cognet.toml": _TOML.format(mode="continuous", more=""),
        "main.py": _TELLS,
    },
}
