"""How the scripted engine counts: a token is a run of up to 16 letters and digits with the space before it, or one
other character; a message is 4 tokens more than its content.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from runtime.abi.engines import Message

MESSAGE_TOKENS = 4
_TOKEN = re.compile(r" ?\w{1,16}|\W")


def tokens(text: str) -> list[str]:
    """The text cut into tokens; joined they are the text again."""
    return _TOKEN.findall(text)


def count(messages: Iterable[Message]) -> int:
    """The tokens of a prompt."""
    return sum(len(tokens(message.content)) + MESSAGE_TOKENS for message in messages)
