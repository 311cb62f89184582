"""The result of a block as lines for people."""

from __future__ import annotations

from collections.abc import Iterator

from capsule.result import BlockError, CapsuleScope, RunResult

_WIDTH = 160


def result_lines(result: RunResult) -> Iterator[str]:
    """What it printed, its value, the names it bound, and what is missing of that."""
    yield from (harmless(line) for line in result.stdout)
    if result.value is not None:
        yield harmless(result.value if isinstance(result.value, str) else repr(result.value))
    if result.value_error is not None:
        yield harmless(f"[the value can't be shown: {result.value_error}]")
    if names := list(_bound(result.scope)):
        yield _one_line(f"[bound {', '.join(names)}]")
    if result.cut is not None:
        yield harmless(f"[cut: {result.cut}]")


def error_text(error: BlockError) -> str:
    """Why it failed."""
    return harmless(f"{error.kind}: {error.message}")


def harmless(text: str) -> str:
    """Text whose only control characters are line ends and tabs: a block's words must not drive the terminal."""
    return "".join(each if each.isprintable() or each in "\n\t" else "\N{REPLACEMENT CHARACTER}" for each in text)


def _bound(scope: CapsuleScope) -> Iterator[str]:
    yield from (f"{name} = {value!r}" for name, value in scope.values.items())
    yield from (f"{absent.name} ({absent.reason})" for absent in scope.unavailable)


def _one_line(text: str) -> str:
    text = harmless(text).replace("\n", " ")
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 2]}…]"
