"""A block's text as something to run: compiled with top-level ``await``, its last expression kept."""

from __future__ import annotations

import ast
import linecache
import opcode
from collections.abc import Iterator
from types import CodeType, FrameType

PREFIX = "<block"
"""How the file of a block's code is named."""
IMPORT = "<frozen importlib._bootstrap>"
VALUE = "__axon_value__"
"""The last expression of a block is bound to this."""
STORES = {opcode.opmap["STORE_NAME"], opcode.opmap["STORE_GLOBAL"]}
CO_COROUTINE = 0x80  # as inspect says, which takes long to import


def compiled(code: str, name: str) -> CodeType:
    """Raises what Python raises for text that is no program."""
    tree = ast.parse(code, name)
    if tree.body and isinstance(last := tree.body[-1], ast.Expr):
        target = ast.copy_location(ast.Name(VALUE, ast.Store()), last)
        tree.body[-1] = ast.copy_location(ast.Assign([target], last.value), last)
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    program: CodeType = compile(tree, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    return program


def is_async(program: CodeType) -> bool:
    """Whether it awaits at top level."""
    return bool(program.co_flags & CO_COROUTINE)


def stored(program: CodeType) -> Iterator[str]:
    """The names that its statements at top level bind."""
    code, extended = program.co_code, 0
    for at in range(0, len(code), 2):
        argument = extended | code[at + 1]
        if code[at] in STORES:
            yield program.co_names[argument]
        extended = argument << 8 if code[at] == opcode.EXTENDED_ARG else 0


def is_running(frame: FrameType | None) -> bool:
    """Whether code of a block is on this stack."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(PREFIX):
            return True
        frame = frame.f_back
    return False


def is_importing(frame: FrameType | None) -> bool:
    """Whether an import is going on on this stack."""
    while frame is not None:
        if frame.f_code.co_filename == IMPORT:
            return True
        frame = frame.f_back
    return False


def forget(name: str) -> None:
    """Its lines are needed no more."""
    linecache.cache.pop(name, None)
