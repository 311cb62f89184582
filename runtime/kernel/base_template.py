"""A program of its own: renders one template within bounds of time and memory, and ends.

A template can loop for ever or ask for gigabytes, and a thread can't be stopped; a process can. Run as a plain script,
``python -P base_template.py FILE``, with the variables as JSON on standard input; it answers one JSON object:
``{"text": ...}`` or ``{"error": ..., "line": ...}``.
"""

import json
import os
import resource
import sys

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_TEMPLATE_BYTES = 256 * 1024
MAX_TEXT_CHARS = 256 * 1024
MEMORY_BYTES = 512 * 1024 * 1024
CPU_S = 2


class Refused(Exception):
    """The template asks for more than there is."""


def main(path: str) -> dict[str, object]:
    """What came of it."""
    variables = json.load(sys.stdin)
    try:
        source = read(path)
        limit()
        return {"text": render(source, variables)}
    except jinja2.TemplateSyntaxError as error:
        return {"error": error.message or "it can't be parsed", "line": error.lineno}
    except RecursionError as error:
        return {"error": "it nests or calls itself too deeply", "line": line_of(error)}
    except MemoryError as error:
        return {"error": f"it asks for more than {MEMORY_BYTES >> 20} MB of memory", "line": line_of(error)}
    except Exception as error:  # noqa: BLE001 - whatever a template can raise is about the template
        return {"error": f"{error or type(error).__name__}"[:500], "line": line_of(error)}


def read(path: str) -> str:
    """The file's text; it may be a link, and must be an ordinary file of UTF-8."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(file, "rb") as stream:
        if not os.path.isfile(path):
            raise Refused("it is no ordinary file")
        data = stream.read(MAX_TEMPLATE_BYTES + 1)
    if len(data) > MAX_TEMPLATE_BYTES:
        raise Refused(f"it has more than {MAX_TEMPLATE_BYTES:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused(f"it isn't UTF-8 (byte {error.start})") from error


def limit() -> None:
    """From here on the process has so much memory and time, and can write no file."""
    used_s = sum(os.times()[:2])
    resource.setrlimit(resource.RLIMIT_CPU, (int(used_s) + 1 + CPU_S, int(used_s) + 2 + CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def render(source: str, variables: dict[str, str]) -> str:
    """The text, in pieces, so that one that never ends is noticed."""
    environment = ImmutableSandboxedEnvironment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    pieces, size = [], 0
    for piece in environment.from_string(source).generate(variables):
        size += len(piece)
        if size > MAX_TEXT_CHARS:
            raise Refused(f"its text has more than {MAX_TEXT_CHARS:,} characters")
        pieces.append(piece)
    return "".join(pieces)


def line_of(error: BaseException) -> int:
    """The line of the template that the exception passed through last; 0 when it didn't."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


if __name__ == "__main__":
    json.dump(main(sys.argv[1]), sys.stdout)
