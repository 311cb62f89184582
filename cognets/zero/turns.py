"""How zero shows its log to a model: each entry as words of the user's or the assistant's side, joined into turns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from runtime import AxonScope
from runtime.abi import payloads as p
from runtime.abi.entries import Entry

SHOWN = 4000
"""Letters of one thing that are shown; both ends stay."""
GRAMMAR = """\
To act, write Python in a block. Blocks run when your message is complete, all at once, and you are shown what came of
them in <result>. Names that a block binds stay for later blocks.
```python
1 + 1
```
What the machine tells you stands in <system>. When nothing is left to do, end your message with this line:
<done/>"""


class Turn(NamedTuple):
    """One side's words without a break; ``first`` is the place of the first entry among them."""

    role: str
    content: str
    first: int = 0

    @property
    def message(self) -> dict[str, str]:
        """As an engine takes it."""
        return {"role": self.role, "content": self.content}


def instructions(base: str, scope: AxonScope) -> str:
    """Who the agent is, how it acts, with what, and what it can't do now and should say so."""
    lines = [base.strip(), GRAMMAR]
    for module in scope.modules:
        lines.append(f"import {module.name}  # {module.doc}".rstrip(" #"))
        lines += [f"    {member.declaration}  # {member.doc}".rstrip(" #") for member in module.members]
    lines += [f"Not available now: {one.name} ({one.reason})" for one in scope.unavailable]
    return "\n".join(line for line in lines if line)


def turns(entries: Sequence[Entry], first: int = 0) -> list[Turn]:
    """The entries from that place on as turns that alternate; a chunk of speech continues the one before."""
    found: list[Turn] = []
    for place, role, words in _spoken(entries, first):
        if found and found[-1].role == role:
            before = found[-1]
            gap = "" if before.content.endswith("\n") or not words.startswith(("<", "`")) else "\n"
            found[-1] = before._replace(content=f"{before.content}{gap}{words}")
        else:
            found.append(Turn(role, words, place))
    return found


def _spoken(entries: Sequence[Entry], first: int) -> Iterator[tuple[int, str, str]]:
    """Place, role and words of every entry that a model is shown. Readings aren't: they are too many for words."""
    blocks: dict[str, int] = {}
    number = 0
    for place, entry in enumerate(islice(entries, first, None), first):
        number = number + 1 if entry.type == "cognet:action:python" else 0
        match entry.data:
            case p.TextStimulus(content=content):
                yield place, "user", f"{quoted(content)}\n"
            case p.AudioStimulus(transcript=str(words)) | p.VisualStimulus(caption=str(words)):
                yield place, "user", f"({entry.data.source.channel}) {quoted(words)}\n"
            case p.TextOutput(content=words):
                yield place, "assistant", words
            case p.PythonAction(action=action, code=code):
                blocks[action] = number
                yield place, "assistant", f"```python\n{code.rstrip()}\n```\n"
            case p.ActionResult(action=action):
                yield place, "user", _result(entry.data, blocks.get(action, 1))
            case p.Interrupt(by=by):
                yield place, "user", f'<system type="interrupt">\n{quoted(by)} interrupted you\n</system>\n'
            case p.SystemMessage(type=kind, text=text, facts=facts):
                told = "\n".join([text, *(str(facts[key]) for key in ("excerpt",) if key in facts)])
                yield place, "user", f'<system type="{kind}">\n{quoted(told)}\n</system>\n'
            case p.Settled():
                yield place, "assistant", "<done/>\n"


def _result(data: p.ActionResult, block: int) -> str:
    """What came of a block: what it printed, its value or its error."""
    how = 'ok="true"' if data.error is None else f'error="{data.error.kind}"'
    lines = [f'<result block="{block}" {how}>']
    if data.stdout:
        lines += ["<stdout>", quoted("\n".join(data.stdout)), "</stdout>"]
    lines.append(quoted(data.error.message if data.error else f"value: {data.value!r}"))
    return "\n".join([*lines, "</result>\n"])


def quoted(text: str) -> str:
    """Words from outside: cut to what is shown, and unable to pass for the machine's own marks."""
    if len(text) > SHOWN:
        text = f"{text[: SHOWN // 2]} … {text[-SHOWN // 2 :]}"
    return re.sub(r"<(?=/?(system|result|stdout)\b)", "‹", text)
