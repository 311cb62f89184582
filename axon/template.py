"""The files that ``axon init`` writes."""

from __future__ import annotations

AXON_TOML = """\
# One agent's configuration. Every key and its default: docs/configuration.md.
# A key that isn't known is an error. What isn't said here comes from the hardware profile of the board;
# `axon doctor` prints the result and where each value came from.
format = 1

[agent]
name = "{name}"
cognet = "{cognet}"             # a shipped cognet, or "cognet" for the folder cognet/ beside this file

[broker]
url = "private"               # start one for this agent; or mqtt://user:password@host:1883, mqtts://host:8883

# One table for each sensor: a process of its own that publishes stimuli at its own rate.
[[sensors]]
driver = "camera"
source = "synthetic"          # needs no hardware; or "images:frames/*.jpg", "video:drive.mp4"
fps = 30

[[sensors]]
driver = "microphone"
source = "synthetic"          # or "wav:speech.wav"
fps = 5                       # blocks a second: 200 ms each

[[sensors]]
driver = "host"               # this machine: CPU, memory, temperature, disk, network
fps = 2

# One table for each actuator: what moves it, within which limits, and what is safe. docs/actuators.md.
# [actuators.steer]
# driver = "simulated"        # moves nothing; or "mqtt": a device of yours
# channel = "steer"           # what the brain says on this channel moves it
# safe = 0                    # where it goes when nothing is heard, or at an emergency stop
# min = -1
# max = 1

# One table for each role that the brain declares: what fills it. docs/engines.md.
{engines}

# Functions in modules/*.py marked @tool may be called by the agent's code as far as these rules allow; what no rule
# names is denied. docs/tools-and-policy.md.
# [policy."lamp.dim"]
# decision = "allow"          # or "deny", or "escalate": ask a person each time
# arguments.level = {{min = 0, max = 1}}
# rate = "5/s"

[media]                       # frames and sound; the log keeps only references to them
# store = "disk"              # or "memory", which spares an SD card
# max_bytes = "2 GB"
# max_age_s = 86400

[log]
# commit_interval_ms = 0      # hold commits for so long, to spare an SD card
# min_free_bytes = "2 GB"     # the oldest history goes when less is free

[brain]
# window_entries = 20000      # entries that the brain keeps in memory
# heartbeat_s = 2             # silent for longer than this, it is restarted
# max_overlap = 64            # wakes that may be open at once
"""

ENGINE = """\
[engines.{role}]
provider = "scripted"         # rules instead of a model"""

NO_ENGINE = """\
# [engines.main]
# provider = "scripted"       # rules instead of a model"""

BOOT_MD = """\
# {name}

You are {name}, a robot. You see through a camera, hear through a microphone, and know how your own computer feels.

Speak briefly. Say what you don't know. When a person is near, move slowly.
"""

GITIGNORE = """\
# What the agent lived through: never published.
data/
"""
