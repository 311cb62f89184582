"""All actuators of an agent: takes durable outputs and tools' calls, sends what may move, stops everything at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from capsule.errors import AxonError
from runtime.abi.actuators import MAX_STATE_BYTES, STATE_DECODER, Command
from runtime.abi.clock import mono_us
from runtime.abi.entries import OUTPUT_PREFIX, FieldOutputEntry, decode
from runtime.abi.errors import ActuatorAway, ActuatorInvalid, ActuatorRefused, AgentStopped, BrokerUnavailable
from runtime.abi.link import Row
from runtime.config.actuators import Actuator
from runtime.kernel.actuators.commander import Commander, Order
from runtime.kernel.actuators.limits import acceptable, check_range
from runtime.kernel.actuators.record import Record, Records
from runtime.kernel.actuators.wire import Wire
from runtime.kernel.stop import StopLatch
from runtime.mqtt.client import BrokerAddress, Incoming
from runtime.policy.policy import Verdict

LOOK_S = 0.25
ROOM_S = 0.005
GOODBYE_S = 1.0


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """Which actuators said that they do what was asked, by name, and which didn't in time."""

    confirmed: list[str] = []
    unconfirmed: list[str] = []


class Actuators:
    """Owns the connection and a commander for each; everything is called in the loop's thread.

    ``adopt(stop, name)`` is called for a stop that an actuator holds and this kernel doesn't know of.
    """

    def __init__(
        self,
        table: Mapping[str, Actuator],
        *,
        agent: str,
        boot: str,
        latch: StopLatch,
        check: Callable[[str, Mapping[str, Any], int], Verdict],
        tell: Callable[[str, msgspec.Struct], None],
        record: Records,
    ) -> None:
        self._latch = latch
        self._record = Record(tell=tell, record=record)
        self._commanders = {name: Commander(name, actuator, boot=boot, check=check) for name, actuator in table.items()}
        self._of_channel: dict[str, list[Commander]] = {}
        self._of_tool: dict[str, list[Commander]] = {}
        for each in self._commanders.values():
            if each.actuator.channel is not None:
                self._of_channel.setdefault(each.actuator.channel, []).append(each)
            if each.actuator.tool is not None:
                self._of_tool.setdefault(each.actuator.tool, []).append(each)
        self._orders: dict[str, Order] = {}
        self._wire = Wire(agent=agent, names=table, heard=self._hear, connected=self._tell_all)
        self._news = asyncio.Event()
        self._room: asyncio.TimerHandle | None = None
        self._serving: asyncio.Task[None] | None = None
        self._ending = False
        self._final: dict[str, str] | None = None
        self.adopt: Callable[[int, str], None] = lambda _stop, _name: None

    async def serve(self, address: BrokerAddress) -> None:
        """Keep connected and keep watch, until ``close``; without actuators there is nothing to do."""
        if not self._commanders:
            return
        self._serving = asyncio.current_task()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._wire.serve(address))
            group.create_task(self._keep_watch())

    async def close(self) -> None:
        """Send nothing more, and leave the broker after what was said last."""
        self._ending = True
        if self._room is not None:
            self._room.cancel()
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.wait([self._serving], timeout=GOODBYE_S)
        self._record.flush(mono_us())

    @property
    def states(self) -> dict[str, str]:
        """What each does now: ``safe``, ``moving``, ``stopped`` or ``gone``; after ``rest``, what it did then."""
        if self._final is not None:
            return self._final
        now_us = mono_us()
        return {name: str(each.device.mode(now_us)) for name, each in self._commanders.items()}

    # -- values ------------------------------------------------------------------------------------

    def durable(self, rows: Iterable[Row]) -> None:
        """Entries are on the disk: what the outputs among them say goes out now, the newest for each actuator."""
        if not self._of_channel or self._ending:
            return
        for row in rows:
            if row.type.startswith(OUTPUT_PREFIX):
                self._take(row)
        if self._orders:
            self._send_orders()

    def permits(self, tool: str, arguments: Mapping[str, Any]) -> AxonError | None:
        """Whether a tool that moves an actuator may be called so, now; None where it may, or moves none.

        ``tool`` is ``module.member``; ``arguments`` are by name, defaults included. Asked after policy, and when a
        person has approved: a stop may have come meanwhile.
        """
        try:
            for commander in self._of_tool.get(tool, ()):
                self._ordered(commander, arguments)
        except AxonError as error:
            self._record.refused(commander.name, error, seq=0, now_us=mono_us())
            return error
        return None

    def called(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """A call that ``permits`` let pass is about to be made: its argument goes out to what the tool moves.

        Raises ``ActuatorAway`` where it can't, and then the call isn't to be made.
        """
        for commander in self._of_tool.get(tool, ()):
            order = self._ordered(commander, arguments)
            now_us = mono_us()
            try:
                self._send(commander, order, now_us)
            except BrokerUnavailable as error:
                raise ActuatorAway(f"{commander.name}: {error.message}") from error

    def _take(self, row: Row) -> None:
        entry = decode(row.body, row.seq)
        for commander in self._of_channel.get(entry.data.channel, ()):  # type: ignore[union-attr]  # an output has one
            try:
                if not isinstance(entry, FieldOutputEntry):
                    raise ActuatorRefused(f"{commander.name} takes a field, not {row.type}")
                reading = entry.data.reading
                value = acceptable(commander.actuator, reading.value, reading.unit)
            except AxonError as error:
                self._record.refused(commander.name, error, seq=row.seq, now_us=mono_us())
            else:
                self._orders[commander.name] = Order(value=value, said_us=entry.time.mono_us, seq=row.seq)

    def _ordered(self, commander: Commander, arguments: Mapping[str, Any]) -> Order:
        """What a call says to one actuator; raises what it is refused for."""
        self._check_moving(commander)
        argument = commander.actuator.argument or ""
        if argument not in arguments:
            raise ActuatorRefused(f"{commander.name}: {argument} isn't given")
        value = acceptable(commander.actuator, arguments[argument], None)
        check_range(commander.actuator, value)
        commander.check_there(mono_us())
        return Order(value=value, said_us=mono_us())

    def _check_moving(self, commander: Commander) -> None:
        if self._latch.latched:
            by = self._latch.state.by
            raise AgentStopped(f"{commander.name}: the emergency stop is latched by {by}", by=by)
        if self._ending:
            raise ActuatorAway(f"{commander.name}: the kernel is shutting down", hint="Start it again.")

    def _send_orders(self) -> None:
        """In this turn of the loop, while the socket takes it; what has to wait is replaced by what comes next."""
        now_us = mono_us()
        while self._orders and not self._wire.crowded:
            name, order = self._orders.popitem()
            try:
                self._check_moving(self._commanders[name])
                self._send(self._commanders[name], order, now_us)
            except BrokerUnavailable as error:
                self._record.refused(name, ActuatorAway(f"{name}: {error.message}"), seq=order.seq, now_us=now_us)
            except AxonError as error:
                self._record.refused(name, error, seq=order.seq, now_us=now_us)
        if self._orders and self._room is None:
            self._room = asyncio.get_running_loop().call_later(ROOM_S, self._room_again)

    def _room_again(self) -> None:
        self._room = None
        self._send_orders()

    def _send(self, commander: Commander, order: Order, now_us: int) -> None:
        command = commander.command(order, now_us)
        self._wire.send(commander.name, command)
        commander.sent(command, now_us)
        self._record.sent(commander.name, command, asked=order.value)

    # -- the emergency stop ------------------------------------------------------------------------

    def announce(self) -> None:
        """The latch has changed: every actuator is told in this turn of the loop, on the wire's own connection."""
        self._orders.clear()
        now_us = mono_us()
        for commander in self._commanders.values():
            if self._latch.latched:
                self._say(commander, commander.tell_stop(self._latch.state.count, now_us))
            elif commander.device.state is not None:
                self._say(commander, commander.tell_release(self._latch.state.count, now_us))

    async def answers(self, within_s: float) -> Answers:
        """Wait, no longer than that, until every actuator says what the latch says; those that are silent are named."""
        asked_us, stopped, stop = mono_us(), self._latch.latched, self._latch.state.count

        def obeys(commander: Commander) -> bool:
            device = commander.device
            if device.heard_us < asked_us or device.state is None:
                return False
            return device.holds(stop) if stopped else device.state.mode in ("safe", "moving")

        return await self._agree(obeys, within_s)

    async def rest(self, within_s: float) -> Answers:
        """The shutdown begins: send nothing more but the safe action, and wait, bounded, until all have taken it."""
        self._ending = True
        self._orders.clear()
        asked_us = mono_us()
        for commander in self._commanders.values():
            self._say(commander, commander.device.take_safe())

        def rests(commander: Commander) -> bool:
            device = commander.device
            return device.state is None or (device.heard_us >= asked_us and device.state.mode != "moving")

        answers = await self._agree(rests, within_s)
        self._final = self.states
        return answers

    async def _agree(self, agrees: Callable[[Commander], bool], within_s: float) -> Answers:
        try:
            async with asyncio.timeout(within_s):
                while not all(map(agrees, self._commanders.values())):
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            pass  # who hasn't answered is named in the answer
        agreed = {name: agrees(each) for name, each in self._commanders.items()}
        return Answers(
            confirmed=[name for name, does in agreed.items() if does],
            unconfirmed=[name for name, does in agreed.items() if not does],
        )

    def _say(self, commander: Commander, command: Command) -> None:
        """An actuator that can't be told now is told when it is heard again; until then it rests by itself."""
        try:
            self._wire.send(commander.name, command)
        except BrokerUnavailable as error:
            self._record.trouble(commander.name, error, mono_us())

    def _tell_all(self) -> None:
        """The connection is a new one: whoever missed a stop hears it."""
        if self._latch.latched:
            self.announce()

    async def _keep_watch(self) -> None:
        """Every now and then: who is gone, who has to be told again, what is to be reported."""
        while True:
            now_us = mono_us()
            for commander in self._commanders.values():
                self._tell_owed(commander, now_us)
                self._record.mode(commander.name, commander.device.mode(now_us), why="", now_us=now_us)
            self._record.flush(now_us)
            await asyncio.sleep(LOOK_S)

    def _tell_owed(self, commander: Commander, now_us: int) -> None:
        if not self._wire.open:
            return
        owed = commander.owed(stopped=self._latch.latched, stop=self._latch.state.count, now_us=now_us)
        if owed is not None:
            self._say(commander, owed)

    # -- what they tell ----------------------------------------------------------------------------

    def _hear(self, name: str, incoming: Incoming) -> None:
        """A state; one that can't be read, or is retained and so of another time, is counted and says nothing."""
        now_us, commander = mono_us(), self._commanders[name]
        try:
            if incoming.retained or len(incoming.payload) > MAX_STATE_BYTES:
                raise ActuatorInvalid(f"{name}: its state is retained, or longer than {MAX_STATE_BYTES} bytes")
            state = STATE_DECODER.decode(incoming.payload)
        except (AxonError, msgspec.MsgspecError, ValueError, RecursionError) as error:
            invalid = error if isinstance(error, AxonError) else ActuatorInvalid(f"{name}: its state: {error}")
            self._record.trouble(name, invalid, now_us)
            return
        commander.heard(state, now_us)
        if state.mode == "stopped" and state.stop > self._latch.state.count:
            self.adopt(state.stop, name)
        self._tell_owed(commander, now_us)
        self._record.mode(name, commander.device.mode(now_us), why=state.why, now_us=now_us)
        self._news.set()
