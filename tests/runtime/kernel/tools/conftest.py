"""The kernel's end of the tools host with a real host, a real log and a real policy."""

from __future__ import annotations

import asyncio
import tempfile
import textwrap
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from capsule.protocol import ToolCall
from capsule.scope import AxonScope
from runtime.abi.entries import decode
from runtime.abi.payloads import SystemMessage
from runtime.config.document import Document
from runtime.config.policy import load_policy
from runtime.kernel.supervisor import Supervisor
from runtime.kernel.tools.approvals import Approval
from runtime.kernel.tools.host import NAME, Patience
from runtime.kernel.tools.tools import Tools
from runtime.log.log import Log
from runtime.log.settings import LogSettings
from runtime.media.ring import MemoryRing
from runtime.policy.policy import Policy

LIMIT_S = 40.0
ALLOW = '[policy."*"]\ndecision = "allow"\n'
SHM = Path("/dev/shm")


class World:
    """An agent's folder and all that stands around its tools."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.told: list[tuple[str, Any]] = []
        self.said: list[str] = []
        self.announced: list[Approval] = []
        self.announce: Callable[[Approval], None] = self.announced.append
        self.scopes: list[AxonScope] = []
        self.supervisor = Supervisor(tell=self._tell, say=self.said.append)
        (folder / "modules").mkdir()
        (folder / "session").mkdir()
        self.log = Log.open(
            folder / "session",
            agent_id="rover",
            session_id="session",
            boot_id="boot",
            settings=LogSettings(volatile_data=True),
            media=MemoryRing(max_bytes=1_000_000),
        )
        self.tools: Tools | None = None

    def _tell(self, type_: str, data: msgspec.Struct) -> None:
        self.told.append((type_, data))

    def module(self, name: str, source: str) -> None:
        (self.folder / "modules" / f"{name}.py").write_text(textwrap.dedent(source))

    def start(self, policy: str = ALLOW, **options: Any) -> Tools:
        """Start the tools under these rules; returns at once."""
        table = load_policy(Document(self.folder / "axon.toml", policy), {})
        options = {"patience": Patience(watch_s=0.1), "block_s": 60.0, **options}
        self.tools = Tools(
            self.folder / "modules",
            policy=Policy(table),
            log=self.log,
            supervisor=self.supervisor,
            tell=self._tell,
            say=self.said.append,
            changed=self.scopes.append,
            announce=lambda approval: self.announce(approval),
            **options,
        )
        self.log.start(asyncio.get_running_loop())
        self.tools.start()
        return self.tools

    async def started(self, policy: str = ALLOW, **options: Any) -> Tools:
        """The same, and wait until the host offers something."""
        tools = self.start(policy, **options)
        async with asyncio.timeout(LIMIT_S):
            await tools.imported()
        return tools

    async def call(self, name: str, *args: Any, block: str = "b", **kwargs: Any) -> Any:
        assert self.tools
        module, member = name.split(".")
        async with asyncio.timeout(LIMIT_S):
            return await self.tools.call(ToolCall(block, module, member, list(args), kwargs))

    async def until(self, condition: Callable[[], Any]) -> Any:
        async with asyncio.timeout(LIMIT_S):
            while not (found := condition()):  # noqa: ASYNC110 (conditions of any kind)
                await asyncio.sleep(0.01)
        return found

    def types(self) -> list[str]:
        return [type_ for type_, _ in self.told]

    def reason(self, name: str) -> str:
        """Why something isn't available."""
        assert self.tools
        return next((one.reason for one in self.tools.scope.unavailable if one.name == name), "")

    def messages(self, kind: str) -> list[SystemMessage]:
        """Entries of the log of one type."""
        rows = self.log.recent(0)
        found = [decode(row.body, row.seq).data for row in rows if row.type == "axon:system:message"]
        return [data for data in found if isinstance(data, SystemMessage) and data.type == kind]

    @property
    def restarts(self) -> int:
        return self.supervisor.children[NAME].restarts

    async def close(self) -> None:
        if self.tools:
            self.tools.interrupt()
            self.tools.close()
        for name in list(self.supervisor.children):
            await self.supervisor.end(name)
        await self.log.close(clean=True)


@pytest.fixture
def agent_folder() -> Iterator[Path]:
    """A folder in memory, where there is such a file system: each approval syncs."""
    with tempfile.TemporaryDirectory(prefix="axon-tools-", dir=SHM if SHM.is_dir() else None) as name:
        yield Path(name)


@pytest.fixture
async def world(agent_folder: Path) -> AsyncIterator[World]:
    made = World(agent_folder)
    yield made
    await made.close()
