"""All that a kernel opens and checks before its loop runs: here blocking is right."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from capsule.sandbox.bytecode import compile_ahead
from hardware_profiles import detect
from hardware_profiles import profile as profiles
from hardware_profiles.profile import Profile
from runtime.abi.clock import mono_us
from runtime.abi.ids import uuid7
from runtime.config.agent import AgentConfig, load_agent
from runtime.config.cognet import CognetConfig, find_cognet, load_cognet
from runtime.durable.files import remove_leftovers
from runtime.kernel.brain_sandbox import PACKAGES, check_sandbox
from runtime.kernel.engines.roles import resolve
from runtime.kernel.session import Session
from runtime.kernel.stop import StopLatch
from runtime.knowledge.places import prepare as prepare_knowledge
from runtime.log.log import Log
from runtime.log.settings import LogSettings
from runtime.media.disk import DiskRing
from runtime.media.ring import MediaRing, MemoryRing


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the person who starts a kernel asks for.

    ``command`` is the pid of the command it is started for, if any; ``engine`` the provider that fills every role
    instead of what ``axon.toml`` says.
    """

    folder: Path
    session: str | None = None
    sandbox: bool = True
    inline: bool = False
    volatile_data: bool = False
    profile: str | None = None
    drivers: bool = True
    brain: bool = True
    command: int = 0
    engine: str = ""


class Setup:
    """Everything open, checked and recovered; ``close`` undoes it when the loop never ran."""

    def __init__(self, asked: Asked, *, shipped_cognets: Path) -> None:
        self.began_us = mono_us()
        self.asked = asked
        self.profile: Profile = profiles.load(asked.profile) if asked.profile else detect.detect()
        self.agent: AgentConfig = load_agent(asked.folder, self.profile)
        self.cognet: CognetConfig = load_cognet(find_cognet(self.agent, shipped_cognets))
        # Without a brain nobody asks an engine.
        wanted = self.cognet if asked.brain else msgspec.structs.replace(self.cognet, engines={})
        self.roles = resolve(wanted, self.agent.engines, self.agent.folder, override=asked.engine)
        self.engine_cores = sorted(self.profile.cores.usable("engines", os.sched_getaffinity(0)))
        self.data = self.agent.folder / "data"
        self.boot_id = uuid7()
        self.sandboxed = asked.sandbox and not asked.inline
        prepare_knowledge(self.agent.folder.resolve())  # a sandbox can only show a folder that is there
        if self.sandboxed:
            compile_ahead(PACKAGES)  # a guest can't write bytecode, and would compile again at each start
        self.sandbox_check = check_sandbox(self.agent.folder, self.cognet.folder) if self.sandboxed else None
        self.session = Session.take(self.data, asked.session)
        try:
            for place in (self.data, self.data / "state" / self.cognet.name):
                remove_leftovers(place)
            self.latch = StopLatch.load(self.data)
            self.media: MediaRing = self._open_media()
            self.log = Log.open(
                self.session.folder,
                agent_id=self.agent.agent.name,
                session_id=self.session.id,
                boot_id=self.boot_id,
                settings=LogSettings(
                    commit_interval_ms=self.agent.log.commit_interval_ms,
                    sync_delay_ms=self.agent.log.sync_delay_ms,
                    volatile_data=asked.volatile_data,
                    seal_bytes=self.agent.log.seal_bytes,
                    seal_age_s=self.agent.log.seal_age_s,
                    retain_bytes=self.agent.log.retain_bytes,
                    retain_age_s=self.agent.log.retain_age_s,
                    min_free_bytes=self.agent.log.min_free_bytes,
                ),
                media=self.media,
            )
            self.settled_seq = self.log.last_of_type("axon:agent:settled")
        except BaseException:
            self.session.release()
            raise

    @property
    def needs_mqtt(self) -> bool:
        """Whether anything of this run speaks MQTT: without drivers nobody does."""
        return self.asked.drivers

    def _open_media(self) -> MediaRing:
        media = self.agent.media
        if media.store == "memory":
            return MemoryRing(max_bytes=media.max_bytes, max_age_s=media.max_age_s)
        return DiskRing(self.session.folder, max_bytes=media.max_bytes, max_age_s=media.max_age_s)
