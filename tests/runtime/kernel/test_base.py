"""The identity: boot.md rendered, bounded, and its errors with their place."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.abi.errors import BaseInvalid, CallInvalid
from runtime.abi.link import Call
from runtime.kernel import base as module
from runtime.kernel.base import Base
from runtime.kernel.base_template import MAX_TEMPLATE_BYTES
from runtime.kernel.console import Console

from .test_knowledge import asked, scholar  # noqa: F401 - a fixture

VARIABLES = {"agent": "rover", "session": "s", "profile": "p", "cognet": "c", "project": ""}


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def console() -> Iterator[Console]:
    """One whose view shows what stands now."""
    made = Console(io.StringIO(), has_view=True)
    yield made
    made.close()


@pytest.fixture
async def base(tmp_path: Path, said: list[str], console: Console) -> AsyncIterator[Base]:
    def say(line: str) -> None:
        said.append(line)
        console.say(line)

    made = Base(tmp_path, VARIABLES, say=say, settled=console.settled)
    yield made
    await made.close()


@pytest.fixture
def boot(tmp_path: Path) -> Path:
    return tmp_path / "boot.md"


async def test_none_declared_is_an_empty_text(base, said):
    assert await base.text() == ""
    assert await base.verbs["base"](Call(1, "base", []), lambda _: None) == ""
    assert said == []


async def test_an_empty_file_is_one_too(base, boot):
    boot.write_text("")
    assert await base.text() == ""


async def test_text_without_a_template_stays_as_it_is(base, boot):
    boot.write_bytes("\ufeff# Rover\n\n* \u00e9 <b>\n\n".encode())
    assert await base.text() == "# Rover\n\n* \u00e9 <b>\n\n"


async def test_its_variables_are_rendered(base, boot):
    names = sorted(VARIABLES)
    boot.write_text("".join(f"{name}={{{{ {name} }}}};" for name in names) + "{% if project %}in one{% endif %}")
    assert await base.text() == "".join(f"{name}={VARIABLES[name]};" for name in names)


async def test_it_is_rendered_again_when_the_file_changes_and_only_then(base, boot, monkeypatch):
    times = []
    real = module.render

    async def counted(*args: Any) -> Any:
        times.append(1)
        return await real(*args)

    monkeypatch.setattr(module, "render", counted)
    for text in ("one", "two"):
        boot.write_text(text)
        assert [await base.text(), await base.text()] == [text, text]
    boot.unlink()
    assert await base.text() == ""
    assert len(times) == 2


async def test_many_callers_at_once_render_it_once(base, boot, monkeypatch):
    boot.write_text("x")
    base.start()
    assert await asyncio.gather(*(base.text() for _ in range(50))) == ["x"] * 50


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("a\n{{ nobody }}\n", 2, "nobody"),
        ("a\nb\n{% if %}", 3, "expression"),
        ("{{ 1 / 0 }}", 1, "division"),
        ("\n{% include 'axon.toml' %}", 2, "loader"),
        ("{{ ().__class__.__mro__ }}", 1, "unsafe"),
        ("{{ [].append(1) }}", 1, "unsafe"),
        ("{{ '{0.__class__}'.format(1) }}", 1, "unsafe"),
        ("{{ range(10**9) }}", 1, "range"),
        ("{{ 'x' * 700_000_000 }}", 1, "512 MB"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", 1, "too deeply"),
        ("{% for i in range(99999) %}{{ 'y' * 99 }}{% endfor %}", 0, "262,144"),
        ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", 0, "without an end"),
        ("{{ '" + "x" * MAX_TEMPLATE_BYTES + "' }}", 0, "262,144 bytes"),
    ],
    ids=lambda value: str(value)[:30],
)
async def test_what_cannot_be_rendered_is_named_with_file_and_line(base, boot, said, text, line, word):
    boot.write_text(text)
    for _ in range(2):
        with pytest.raises(BaseInvalid, match=word) as caught:
            await base.text()
    assert caught.value.facts == {"file": str(boot), "line": line}
    assert said == [f"[base] {caught.value.message}"]
    boot.write_text("mended")
    assert await base.text() == "mended"


async def test_what_is_no_text_file_is_refused(base, boot):
    boot.write_bytes(b"ab\xff")
    with pytest.raises(BaseInvalid, match="byte 2"):
        await base.text()
    boot.unlink()
    os.mkfifo(boot)
    with pytest.raises(BaseInvalid, match="no ordinary file"):
        await base.text()
    boot.unlink()
    boot.mkdir()
    with pytest.raises(BaseInvalid):
        await base.text()


async def test_a_machine_that_cannot_render_now_is_asked_again(base, boot, monkeypatch):
    boot.write_text("x")
    monkeypatch.setattr(module, "PROGRAM", "/nowhere/at/all.py")
    with pytest.raises(BaseInvalid, match="couldn't be rendered"):
        await base.text()
    monkeypatch.undo()
    assert await base.text() == "x"


async def test_one_that_hangs_is_ended(base, boot, monkeypatch, tmp_path):
    boot.write_text("x")
    (tmp_path / "hang.py").write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setattr(module, "PROGRAM", str(tmp_path / "hang.py"))
    monkeypatch.setattr(module, "PATIENCE_S", 0.3)
    with pytest.raises(BaseInvalid, match="within"):
        await base.text()


async def test_it_takes_no_arguments(base):
    with pytest.raises(CallInvalid):
        await base.verbs["base"](Call(1, "base", ["x"]), lambda _: None)


def test_a_brain_asks_for_it_in_hooks_and_wakes(scholar):  # noqa: F811 - the fixture
    agent = scholar
    assert asked(agent, "boot")["value"][0] == "I am test of cognet.\n"
    (agent.folder / "boot.md").write_text("{{ agent }}, changed")
    assert asked(agent, "base") == {"value": "test, changed"}
    (agent.folder / "boot.md").write_text("\n{{ wrong }}")
    answer = asked(agent, "base")
    assert answer["error"] == "BASE_INVALID"
    assert f"{agent.folder / 'boot.md'}:2:" in answer["message"]
    agent.stop()
    assert "boot.md:2:" in agent.words()


async def test_a_corrected_file_takes_its_error_from_the_view(base, boot, console):
    boot.write_text("{{ nobody }}")
    with pytest.raises(BaseInvalid):
        await base.text()
    assert len(console.notices) == 1
    boot.write_text("right")
    assert await base.text() == "right"
    assert not console.notices
