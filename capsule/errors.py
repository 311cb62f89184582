"""The root of every error that Axon names: a stable code, what happened, and what to do now."""

from __future__ import annotations

from typing import Any, ClassVar


class AxonError(Exception):
    """A refusal or failure with a stable ``code``.

    ``message`` says what happened, ``hint`` what to do now, ``facts`` are the values both were built from.
    Subclasses set ``code`` and may set a default ``hint``; they also inherit the built-in they resemble.
    """

    code: ClassVar[str] = "AXON_ERROR"
    hint: str = ""

    def __init__(self, message: str, *, hint: str = "", **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        if hint:
            self.hint = hint
        self.facts = facts

    def __str__(self) -> str:
        text = f"{self.code}: {self.message}"
        return f"{text} ({self.hint})" if self.hint else text


class FrameInvalid(AxonError, ValueError):
    """A peer sent bytes that are no frame of the protocol; the connection is closed."""

    code = "FRAME_INVALID"
    hint = "The peer speaks another protocol or version; restart both from one installation."


class SandboxUnavailable(AxonError, RuntimeError):
    """The sandbox can't be built on this machine."""

    code = "SANDBOX_UNAVAILABLE"
    hint = "Run `axon doctor` to see what is missing, or start with --no-sandbox (recorded in the log)."


class SandboxLeaks(AxonError, RuntimeError):
    """The sandbox was built but its self-test could do something that must be denied."""

    code = "SANDBOX_LEAKS"
    hint = "Don't run untrusted code on this machine; `axon doctor` lists what was allowed."
