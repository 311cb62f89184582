"""Tool modules as blocks import them: stubs with the real names and signatures, whose calls leave the capsule."""

from __future__ import annotations

import ast
import asyncio
import inspect
import sys
import typing
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from threading import Event, Lock
from types import ModuleType
from typing import Any

from capsule.guest import belonging
from capsule.guest.errors import PolicyDenied, ToolFailed
from capsule.guest.plain import MAX_CHARACTERS, NotPlain, measured
from capsule.protocol import Answer, Asked, ToolCall
from capsule.scope import AxonScope, Member, Module

LOOK_S = 0.02
"""A thread that waits for an answer looks so often whether its block was stopped."""


class Calls:
    """Calls that wait for their answers."""

    def __init__(self, send: Callable[[Asked], None]) -> None:
        self._send = send
        self._lock = Lock()
        self._last = 0
        self._waiting: dict[int, Callable[[Answer], None]] = {}

    def answered(self, answer: Answer) -> None:
        """An answer came; one for a block that has ended is nobody's."""
        with self._lock:
            hear = self._waiting.pop(answer.call, None)
        if hear:
            hear(answer)

    def wait(self, module: str, member: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call and wait, stopping only this thread."""
        came, answers = Event(), list[Answer]()

        def hear(answer: Answer) -> None:
            answers.append(answer)
            came.set()

        number = self._ask(module, member, args, kwargs, hear)
        try:
            while not came.wait(LOOK_S):
                pass
        finally:
            self._forget(number)
        return _value(answers[0])

    async def await_(self, module: str, member: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call and await."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()

        def settle(answer: Answer) -> None:
            if not future.done():
                future.set_result(answer)

        def hear(answer: Answer) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, answer)

        number = self._ask(module, member, args, kwargs, hear)
        try:
            return _value(await future)
        finally:
            self._forget(number)

    def _ask(
        self, module: str, member: str, args: Sequence[Any], kwargs: dict[str, Any], hear: Callable[[Answer], None]
    ) -> int:
        of = belonging.block.get()
        if of is None:
            raise ToolFailed(f"{module}.{member} was called outside every block")
        try:
            (positional, named), _ = measured([list(args), kwargs], MAX_CHARACTERS)
        except NotPlain as error:
            raise TypeError(f"{module}.{member} takes plain values: {error}") from None
        with self._lock:
            self._last += 1
            number = self._last
            self._waiting[number] = hear
        self._send(Asked(number, ToolCall(of, module, member, positional, named)))
        return number

    def _forget(self, number: int) -> None:
        with self._lock:
            self._waiting.pop(number, None)


def _value(answer: Answer) -> Any:
    if answer.error is None:
        return answer.value
    raise (PolicyDenied if answer.denied else ToolFailed)(answer.error)


def install(send: Callable[[Asked], None]) -> Finder:
    """From now on blocks can import tool modules."""
    finder = Finder(Calls(send))
    sys.meta_path.insert(0, finder)
    return finder


class Finder(MetaPathFinder, Loader):
    """Finds the tool modules of the present scope; where both exist, a tool module hides one of Python's."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._modules: dict[str, Module] = {}
        self._unavailable: dict[str, str] = {}
        self._denied: dict[str, list[Member]] = {}

    def answered(self, answer: Answer) -> None:
        """The kernel has answered a call."""
        self._calls.answered(answer)

    def scope_changed(self, scope: AxonScope) -> None:
        """Later imports see this; modules that were imported are brought up to date, or vanish."""
        self._modules = {module.name: module for module in scope.modules}
        self._unavailable = {one.name: one.reason for one in scope.unavailable}
        self._denied = {}
        for one in scope.unavailable:
            of, _, member = one.name.partition(".")
            if member.isidentifier() and of not in self._unavailable:
                self._denied.setdefault(of, []).append(_unknown(member, one.reason))
        for name, module in list(sys.modules.items()):
            spec = getattr(module, "__spec__", None)
            if isinstance(spec, ModuleSpec) and spec.loader is self:
                if name in self._modules or name in self._denied:
                    self.exec_module(module)
                else:
                    del sys.modules[name]

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - importlib's signature
        target: ModuleType | None = None,  # noqa: ARG002 - the same
    ) -> ModuleSpec | None:
        """Python's import system asks."""
        if fullname in self._modules or fullname in self._denied:
            return ModuleSpec(fullname, self)
        if fullname in self._unavailable:
            raise ImportError(f"{fullname} is unavailable: {self._unavailable[fullname]}", name=fullname)
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Fill it with stubs."""
        known = self._modules.get(module.__name__) or Module(name=module.__name__)
        module.__doc__ = known.doc or None
        # One that policy denies can be called too: the refusal then names the rule, and is recorded.
        offered = [*known.members, *self._denied.get(known.name, [])]
        members = {member.name: _stub(known.name, member, self._calls) for member in offered}
        for gone in [name for name in vars(module) if not name.startswith("__") and name not in members]:
            delattr(module, gone)
        vars(module).update(members)
        module.__all__ = [member.name for member in known.members]  # type: ignore[attr-defined]  # a module's own list


def _unknown(name: str, reason: str) -> Member:
    """A member that can't be used; what it takes is nobody's business."""
    return Member(name=name, declaration=f"def {name}(*args, **kwargs)", doc=reason)


def _stub(module: str, member: Member, calls: Calls) -> Callable[..., Any]:
    """A function that looks like the tool and asks the kernel."""
    name, signature = member.name, _signature(member)

    def check(args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{module}.{name}(): {error}") from None

    async def awaits(*args: Any, **kwargs: Any) -> Any:
        check(args, kwargs)
        return await calls.await_(module, name, args, kwargs)

    def waits(*args: Any, **kwargs: Any) -> Any:
        check(args, kwargs)
        return calls.wait(module, name, args, kwargs)

    stub: Callable[..., Any] = awaits if member.is_async else waits
    stub.__name__ = stub.__qualname__ = name
    stub.__module__ = module
    stub.__doc__ = member.doc or None
    stub.__signature__ = signature  # type: ignore[attr-defined]  # what inspect looks for
    return stub


def _signature(member: Member) -> inspect.Signature:
    """The declaration's; an annotation that means nothing here stays text."""
    tree = ast.parse(f"from __future__ import annotations\n{member.declaration.rstrip().rstrip(':')}: ...")
    space: dict[str, Any] = {}
    exec(compile(tree, "<declaration>", "exec", dont_inherit=True), space)  # made by the kernel's own tools host
    signature = inspect.signature(space[member.name])
    parameters = [one.replace(annotation=_meant(one.annotation)) for one in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=_meant(signature.return_annotation))


def _meant(annotation: Any) -> Any:
    if type(annotation) is not str:
        return annotation
    try:
        return eval(annotation, dict(vars(typing)))
    except Exception:  # noqa: BLE001 - a class of the robot's own, which isn't here
        return annotation
