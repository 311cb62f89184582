"""A capsule that can't be started, or starts and never gets ready: blocks say why, and it works once it can."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

import capsule as package
from capsule.sandbox.plan import Bind
from runtime.kernel.capsule import capsule as host

pytestmark = pytest.mark.sandbox

GUEST = "/app/capsule/guest/__main__.py"
REAL = Path(package.__path__[0]) / "guest" / "__main__.py"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """What stands in the place of the guest's program."""
    path = tmp_path / "program.py"
    tmp_path.chmod(0o755)
    return path


async def test_a_guest_that_ends_at_its_start_is_started_later_and_later_and_its_last_words_are_the_reason(
    make_capsule, program, monkeypatch
):
    monkeypatch.setattr(host, "READY_S", 1.5)
    program.write_text("raise SystemExit('the roof is on fire')")
    capsule = make_capsule(binds=[Bind(program, GUEST)])
    result = await capsule.one("1")
    assert result.error.kind == "exception"
    assert "the roof is on fire" in result.error.message
    assert "not executed" in result.error.message
    waits = [line for line in capsule.said if "starting it again in" in line]
    assert ["0.1 s" in waits[0], "0.2 s" in waits[1]] == [True, True]
    assert "the roof is on fire" in waits[0]
    shutil.copyfile(REAL, program)
    monkeypatch.setattr(host, "READY_S", 30)
    assert (await capsule.one("1 + 1")).value == 2


async def test_a_guest_that_never_gets_ready_is_ended_and_the_next_one_serves(make_capsule, program, monkeypatch):
    monkeypatch.setattr(host, "READY_S", 0.5)
    program.write_text("import time\ntime.sleep(1000)")
    capsule = make_capsule(binds=[Bind(program, GUEST)])
    result = await capsule.one("1")
    assert "not executed: the capsule is still being started" in result.error.message
    shutil.copyfile(REAL, program)
    monkeypatch.setattr(host, "READY_S", 30)
    assert (await capsule.one("1 + 1")).value == 2
    assert [type_ for type_, _ in capsule.told][:3] == [
        f"kernel:process:{what}" for what in ("started", "ended", "started")
    ]


async def test_blocks_that_wait_for_a_capsule_can_be_interrupted(make_capsule, program):
    program.write_text("import time\ntime.sleep(1000)")
    capsule = make_capsule(binds=[Bind(program, GUEST)])
    blocks, results = capsule.blocks("1", "2"), {}
    running = asyncio.ensure_future(capsule.capsule.execute(blocks, results.__setitem__))
    await asyncio.sleep(0)
    capsule.capsule.interrupt([block.id for block in blocks])
    await asyncio.wait_for(running, 20)
    assert [result.error.kind for result in results.values()] == ["interrupt"] * 2


async def test_without_a_sandbox_to_be_had_the_reason_is_named(make_capsule, monkeypatch):
    monkeypatch.setattr(host, "READY_S", 0.5)
    capsule = make_capsule(binds=[Bind(Path("/no/such/folder"), "/no/such/folder")])
    result = await capsule.one("1")
    assert "/no/such/folder can't be shown to the guest: it isn't there" in result.error.message
    assert any("can't be started" in line for line in capsule.said)
