"""A block's text as something to run: compiled with top-level ``await``, its last expression kept."""

from __future__ import annotations

import ast
import linecache
from types import CodeType

from capsule.guest.bindings import VALUE

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


def forget(name: str) -> None:
    """Its lines are needed no more."""
    linecache.cache.pop(name, None)
