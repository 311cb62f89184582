"""Every error of the runtime, one class a code; the brain sees the same classes as the kernel raises."""

from __future__ import annotations

from typing import Any

import msgspec

from capsule.errors import AxonError, FrameInvalid, SandboxLeaks, SandboxUnavailable

# -- configuration ---------------------------------------------------------------------------------


class ConfigInvalid(AxonError, ValueError):
    """A file such as ``axon.toml`` says something that isn't understood; ``file``, ``line``, ``key``."""

    code = "CONFIG_INVALID"


class AgentNotFound(AxonError, FileNotFoundError):
    """The folder holds no agent."""

    code = "AGENT_NOT_FOUND"
    hint = "An agent is a folder with an axon.toml; `axon init DIR` makes one."


class AbiMismatch(AxonError, RuntimeError):
    """The cognet was written for another version of the ABI; ``wanted``, ``offered``."""

    code = "ABI_MISMATCH"


class CognetInvalid(AxonError, ValueError):
    """The cognet can't be loaded: no loop, two loops, an import that fails, a wrong hook."""

    code = "COGNET_INVALID"


class CognetExists(AxonError, FileExistsError):
    """The folder for a new cognet holds something already, which isn't overwritten."""

    code = "COGNET_EXISTS"
    hint = "Choose another folder, or edit the cognet that is there."


class CognetNotFound(AxonError, FileNotFoundError):
    """No cognet of that name."""

    code = "COGNET_NOT_FOUND"
    hint = '`cognet` in axon.toml names a shipped cognet, or is "cognet" for the agent\'s own folder.'


# -- the log ---------------------------------------------------------------------------------------


class StorageFailed(AxonError, OSError):
    """The log can't be written; what was admitted is readable but not durable."""

    code = "STORAGE_FAILED"
    hint = "Check the disk (full, read-only, removed, worn out); recording resumes by itself when writes work again."


class StorageUnsupported(AxonError, OSError):
    """The data folder lies on a file system that can't keep the promise."""

    code = "STORAGE_UNSUPPORTED"
    hint = "Put the agent on a local disk or card (ext4, f2fs, btrfs, xfs), or allow loss with --volatile-data."


class SqliteUnsupported(AxonError, RuntimeError):
    """The SQLite library is one with a known corruption bug."""

    code = "SQLITE_UNSUPPORTED"
    hint = "Reinstall the pinned apsw wheel: `make setup`."


class LogDamaged(AxonError, ValueError):
    """The log's bytes are not what was written; ``seq`` is the first that fails."""

    code = "LOG_DAMAGED"
    hint = "The next start sets the damaged file aside and keeps the longest valid part."


class LogVersion(AxonError, RuntimeError):
    """The log was written in a format this release doesn't read; ``found``, ``known``."""

    code = "LOG_VERSION"


class LogBacklogFull(AxonError, BlockingIOError):
    """Too much is admitted and not yet durable; nothing more is admitted now."""

    code = "LOG_BACKLOG_FULL"
    hint = "The disk is slower than the sensors; raise commit_interval_ms, or send less."


class EntryTooLarge(AxonError, ValueError):
    """An entry's body is larger than the log takes."""

    code = "ENTRY_TOO_LARGE"
    hint = "Put bytes in the media store and refer to them."


class EntryInvalid(AxonError, ValueError):
    """An entry's data don't fit its type; nothing was admitted."""

    code = "ENTRY_INVALID"


class EntryTypeUnknown(AxonError, ValueError):
    """No such entry or telemetry type, or not one that may be written from here."""

    code = "ENTRY_TYPE_UNKNOWN"


class SessionLocked(AxonError, BlockingIOError):
    """Another kernel holds this session."""

    code = "SESSION_LOCKED"
    hint = "Stop the other `axon run` first: one kernel at a time runs an agent."


class SessionNotFound(AxonError, FileNotFoundError):
    """No such session."""

    code = "SESSION_NOT_FOUND"


# -- stimuli ---------------------------------------------------------------------------------------


class StimulusInvalid(AxonError, ValueError):
    """A stimulus that can't be read: malformed, of a wrong type, not finite."""

    code = "STIMULUS_INVALID"


class StimulusTooLarge(AxonError, ValueError):
    """A stimulus larger than its kind may be."""

    code = "STIMULUS_TOO_LARGE"


class TopicInvalid(AxonError, ValueError):
    """A topic that names no kind and channel."""

    code = "TOPIC_INVALID"


class ChannelLimit(AxonError, ValueError):
    """More channels than an agent may have."""

    code = "CHANNEL_LIMIT"
    hint = "An agent has at most 1,024 channels; put the varying part in `source.id` or in the payload."


class SourceConflict(AxonError, ValueError):
    """Two drivers send under one source id at the same time."""

    code = "SOURCE_CONFLICT"
    hint = "Give each device its own `source.id`, or stop one of the two drivers."


class CommandRefused(AxonError, PermissionError):
    """A command over MQTT that is retained, expired, repeated or unreadable."""

    code = "COMMAND_REFUSED"
    hint = "Send commands unretained, with an id and a ttl_ms that hasn't passed."


class BrokerUnavailable(AxonError, ConnectionError):
    """The MQTT broker can't be reached or started."""

    code = "BROKER_UNAVAILABLE"


class SensorInvalid(AxonError, ValueError):
    """A driver was asked for something it doesn't have: an unknown driver, source or option."""

    code = "SENSOR_INVALID"
    hint = "Correct the [[sensors]] table in axon.toml."


class SourceUnreadable(AxonError, OSError):
    """What a driver should capture from can't be used: no such file, not of that format, a device that is gone."""

    code = "SOURCE_UNREADABLE"


# -- the brain -------------------------------------------------------------------------------------


class CognetAccessedBeforeLoad(AxonError, RuntimeError):
    """A verb was called at the top level of the cognet."""

    code = "COGNET_ACCESSED_BEFORE_LOAD"
    hint = "Work inside the loop or in a hook; at import there is no kernel yet."


class SyscallOutsideWake(AxonError, RuntimeError):
    """A verb that needs a wake or hook was called from a bare callback or a task that outlived its wake."""

    code = "SYSCALL_OUTSIDE_WAKE"
    hint = "Call it inside the loop, a hook, or a coroutine given to wake.spawn()."


class KernelStopping(AxonError, RuntimeError):
    """The kernel is shutting down and takes no more of these."""

    code = "KERNEL_STOPPING"


class WakeUnavailable(AxonError, RuntimeError):
    """An invocation cognet asked to wake itself."""

    code = "WAKE_UNAVAILABLE"
    hint = 'Only a continuous cognet has a clock; set mode = "continuous" in cognet.toml.'


class StoreKeyUndeclared(AxonError, KeyError):
    """A store key that ``cognet.toml`` doesn't declare."""

    code = "STORE_KEY_UNDECLARED"
    hint = 'Declare it under [store] in cognet.toml: name = "type".'


class StoreValueInvalid(AxonError, TypeError):
    """A store value that doesn't fit the declared type."""

    code = "STORE_VALUE_INVALID"


class KnowledgeNotFound(AxonError, LookupError):
    """There is no knowledge entry of that name."""

    code = "KNOWLEDGE_NOT_FOUND"
    hint = "`axon knowledge list DIR` shows the names that are there."


class KnowledgeEscape(AxonError, PermissionError):
    """A name that isn't one of the agent's own knowledge: a path, a link, a look-alike, a module's; `name`."""

    code = "KNOWLEDGE_ESCAPE"
    hint = "Use a plain name such as notes/today.md, exactly as the catalogue shows it; nothing was changed."


class KnowledgeClash(AxonError, FileExistsError):
    """An entry can't be where a folder of entries is, nor a folder where an entry is."""

    code = "KNOWLEDGE_CLASH"
    hint = "Choose another name, or remove what is in the way."


class KnowledgeTooLarge(AxonError, ValueError):
    """More than one entry, or one answer of the catalogue, may hold; `size_bytes`."""

    code = "KNOWLEDGE_TOO_LARGE"
    hint = "Divide it into several entries, or open it by its path; narrow a catalogue with match or limit."


class KnowledgeUnreadable(AxonError, ValueError):
    """The entry is there, but it isn't UTF-8 text in an ordinary file that the kernel may read."""

    code = "KNOWLEDGE_UNREADABLE"
    hint = "Open it by its path, or correct the file; `axon doctor DIR` names what is odd."


class KnowledgeUnwritable(AxonError, OSError):
    """The disk didn't take the change of an entry; what was there before still stands."""

    code = "KNOWLEDGE_UNWRITABLE"
    hint = "Check the disk (full, read-only, removed) and the rights on knowledge/, then try again."


class BaseInvalid(AxonError, ValueError):
    """The agent's boot.md can't be rendered; `file`, `line`."""

    code = "BASE_INVALID"
    hint = "Correct the template; docs/knowledge.md lists its variables and bounds. It is read again at the next call."


class BrainLost(AxonError, ConnectionError):
    """The kernel lost the brain, or the brain its kernel, in the middle of a call."""

    code = "BRAIN_LOST"


class CallInvalid(AxonError, TypeError):
    """A verb was called with arguments it doesn't take."""

    code = "CALL_INVALID"


class CallCancelled(AxonError, RuntimeError):
    """A call ended because nobody waited for it any more: an interrupt, or a task that was cancelled."""

    code = "CALL_CANCELLED"


# -- tools and policy ------------------------------------------------------------------------------


class PolicyDenied(AxonError, PermissionError):
    """The policy refused a call of a tool or an actuator; ``name``, ``rule``."""

    code = "POLICY_DENIED"
    hint = "The rules stand under [policy] in axon.toml; what no rule names is denied."


class ToolFailed(AxonError, RuntimeError):
    """A tool raised, returned what can't be carried, or its process ended during the call."""

    code = "TOOL_FAILED"


class ToolUnavailable(AxonError, LookupError):
    """No such tool, or its module isn't loaded now."""

    code = "TOOL_UNAVAILABLE"
    hint = "`axon doctor DIR` lists the modules and why one isn't there."


class ToolInvalid(AxonError, TypeError):
    """Something was marked as a tool that can't be one."""

    code = "TOOL_INVALID"
    hint = "@tool goes on plain and async functions that return one value."


class ApprovalUnknown(AxonError, LookupError):
    """No call waits for an approval with that id: it was answered, ran out, or never was."""

    code = "APPROVAL_UNKNOWN"
    hint = "`axon approve DIR --list` shows what waits now."


# -- actuators -------------------------------------------------------------------------------------


class AgentStopped(PolicyDenied):
    """The emergency stop is latched: nothing reaches an actuator."""

    code = "STOPPED"
    hint = "When a person has looked at the robot: `axon stop DIR --clear`."


class ActuatorRefused(PolicyDenied):
    """A value that an actuator doesn't take: not its type or unit, not finite, or, from a tool, out of its range."""

    code = "ACTUATOR_REFUSED"
    hint = "The range and the unit stand under [actuators] in axon.toml."


class ActuatorLate(AxonError, TimeoutError):
    """A value became durable after its time to live: a robot isn't moved late."""

    code = "ACTUATOR_LATE"
    hint = "The disk is slower than ttl_ms; lower commit_interval_ms, or raise ttl_ms if the robot may wait so long."


class ActuatorAway(AxonError, ConnectionError):
    """An actuator that hasn't told its state lately, or a broker that can't be reached: nothing is sent."""

    code = "ACTUATOR_AWAY"
    hint = "Look at its driver and at the broker; nothing that was meant meanwhile is sent later."


class ActuatorInvalid(AxonError, ValueError):
    """A driver was started with settings it can't work with, or an actuator told a state that can't be read."""

    code = "ACTUATOR_INVALID"
    hint = "docs/actuators.md says what a driver takes and tells."


# -- engines ---------------------------------------------------------------------------------------


class EngineRoleUnbound(AxonError, LookupError):
    """No engine for that role: the cognet doesn't declare it, or nothing that fits fills it; ``role``."""

    code = "ENGINE_ROLE_UNBOUND"
    hint = "A role is declared in cognet.toml and filled in axon.toml: [engines.<role>] with a provider and a model."


class EngineModelInvalid(AxonError, ValueError):
    """What a role's ``model`` names can't be read as a model of its provider; ``role``, ``model``."""

    code = "ENGINE_MODEL_INVALID"
    hint = "Correct `model` under [engines.<role>] in axon.toml, or the file it names."


class EngineUnavailable(AxonError, ConnectionError):
    """The engine of a role can't be loaded, or has just died and isn't up again; ``role``."""

    code = "ENGINE_UNAVAILABLE"
    hint = "It is started again by itself; `axon doctor DIR` says which role is filled by what."


class EngineFailed(AxonError, RuntimeError):
    """An engine failed in the middle of a request, or its process ended; ``role``."""

    code = "ENGINE_FAILED"
    hint = "Ask again: a process that ended is started anew."


class EngineContextExceeded(AxonError, ValueError):
    """A request is longer than the engine's context, which it noticed before any work; ``tokens``, ``context``."""

    code = "ENGINE_CONTEXT_EXCEEDED"
    hint = "Drop what the answer can do without; the handle's count(messages) tells what fits."


class EngineRequestInvalid(AxonError, ValueError):
    """A request that no engine can take: its messages, its options, its input, or their size."""

    code = "ENGINE_REQUEST_INVALID"


class EngineQueueFull(AxonError, BlockingIOError):
    """Too many requests wait for a slot of an engine already; ``role``."""

    code = "ENGINE_QUEUE_FULL"
    hint = "Await some before the next, or give the role more slots."


# -- commands --------------------------------------------------------------------------------------


class SystemRefused(AxonError, OSError):
    """The operating system refused a file or a folder that a command needs."""

    code = "SYSTEM_REFUSED"
    hint = "Check that the path is what was meant, and that this user may read and write there."


class AgentExists(AxonError, FileExistsError):
    """The folder holds an agent already, which isn't overwritten."""

    code = "AGENT_EXISTS"
    hint = "Choose another folder, or edit the axon.toml that is there."


class NoAnswer(AxonError, TimeoutError):
    """Nobody can tell that the agent has answered: its wake failed, was too slow, or its cognet never settles."""

    code = "NO_ANSWER"
    hint = "What it does goes on, and stands in its log: `axon log show DIR`."


class AgentNotRunning(AxonError, ConnectionError):
    """No kernel answers for this agent."""

    code = "AGENT_NOT_RUNNING"
    hint = "Start it with `axon run DIR`."


class StopUnreadable(AxonError, ValueError):
    """The emergency stop's file can't be read, so the stop counts as latched."""

    code = "STOP_UNREADABLE"
    hint = "Check the robot, then clear it: `axon stop DIR --clear`."


def error_classes() -> dict[str, type[AxonError]]:
    """Every error class by its code."""
    found: dict[str, type[AxonError]] = {}
    pending = [AxonError]
    while pending:
        kind = pending.pop()
        found[kind.code] = kind
        pending += kind.__subclasses__()
    return found


class WireError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error as it crosses a socket."""

    code: str
    message: str
    hint: str = ""
    facts: dict[str, Any] = {}


def to_wire(error: AxonError) -> WireError:
    """Facts that no message can carry are sent as their text."""
    facts = {
        key: value if isinstance(value, str | int | float | bool) else str(value) for key, value in error.facts.items()
    }
    return WireError(code=error.code, message=error.message, hint=error.hint, facts=facts)


def from_wire(wire: WireError) -> AxonError:
    """The same class as was raised on the other side; an unknown code keeps its words under the root."""
    kind = error_classes().get(wire.code, AxonError)
    facts = {key: value for key, value in wire.facts.items() if key not in ("message", "hint", "self")}
    return kind(wire.message, hint=wire.hint, **facts)


__all__ = [
    "AxonError",
    "FrameInvalid",
    "SandboxLeaks",
    "SandboxUnavailable",
    "WireError",
    "error_classes",
    "from_wire",
    "to_wire",
] + [kind.__name__ for kind in error_classes().values() if kind.__module__ == __name__]
