"""``axon knowledge``: the same entries with and without a kernel, byte for byte."""

import io
import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from runtime.abi.errors import KnowledgeEscape


@pytest.fixture
def given(monkeypatch):
    """What stands on standard input."""

    def give(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))

    return give


def test_an_entry_goes_in_and_out_byte_for_byte(agent):
    """As a person does it, through the shell's pipes."""
    content = b"\xff\0one\r\ntwo\n\n"

    def run(*words: str, given: bytes = b"") -> bytes:
        command = [sys.executable, "-m", "axon", "knowledge", *words]
        return subprocess.run(command, input=given, capture_output=True, timeout=40, check=True).stdout

    run("write", str(agent), "notes/a.bin", given=content)
    assert (agent / "knowledge/notes/a.bin").read_bytes() == content
    assert run("read", str(agent), "notes/a.bin") == content


def test_without_a_kernel_it_is_written_all_the_same_and_not_traced(agent, axon, given, tmp_path):
    given(b"one")
    ended = axon("knowledge", "write", agent, "a.md")
    assert ended.out == "a.md: 3 bytes, durable (no kernel runs: not traced)\n"
    source = tmp_path / "source"
    source.write_bytes(b"from a file")
    ended = axon("knowledge", "write", agent, "a.md", "--file", source, "--json")
    assert json.loads(ended.out) == {"name": "a.md", "size": 11, "traced": False}
    assert (agent / "knowledge/a.md").read_bytes() == b"from a file"


def test_with_a_kernel_it_goes_through_it(agent, axon, given, kernel):
    asked = []

    async def write(name: str, content: bytes, by: str) -> None:
        asked.append((name, content, bool(by)))

    async def remove(name: str, by: str) -> dict[str, bool]:
        asked.append((name, None, bool(by)))
        return {"removed": True}

    kernel(knowledge_write=write, knowledge_remove=remove)
    given(b"\xff" + b"x" * 999_999)
    assert axon("knowledge", "write", agent, "a").out == "a: 1,000,000 bytes, durable\n"
    assert json.loads(axon("knowledge", "rm", agent, "a", "--json").out)["traced"]
    assert asked == [("a", b"\xff" + b"x" * 999_999, True), ("a", None, True)]
    assert not (agent / "knowledge").exists()


def test_a_kernels_refusal_is_printed_and_not_worked_around(agent, axon, given, kernel):
    async def write(name: str, content: bytes, by: str) -> None:
        raise KnowledgeEscape("no", name=name)

    kernel(knowledge_write=write)
    given(b"x")
    ended = axon("knowledge", "write", agent, "a")
    assert ended.status == 1
    assert ended.err.startswith("KNOWLEDGE_ESCAPE: no\n")
    assert not (agent / "knowledge").exists()


def test_the_list_is_ordered_and_narrowed(agent, axon):
    for name, text in {"b.md": "---\ndescription: Docking\n---\n", "a/z.md": "x", "c.md": "x"}.items():
        path = agent / "knowledge" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert [line.split()[1] for line in axon("knowledge", "list", agent).out.splitlines()] == ["a/z.md", "b.md", "c.md"]
    assert "Docking" in axon("knowledge", "list", agent, "--match", "DOCK").out
    (entry,) = json.loads(axon("knowledge", "list", agent, "--limit", 1, "--json").out)
    assert entry == {"name": "a/z.md", "description": "", "size": 1, "path": str(agent / "knowledge/a/z.md")}
    assert axon("knowledge", "list", agent, "--limit", -1).status == 2


def test_a_missing_entry_is_refused_by_read_and_fine_for_rm(agent, axon):
    ended = axon("knowledge", "read", agent, "a")
    assert ended.status == 1
    assert ended.err.startswith("KNOWLEDGE_NOT_FOUND")
    assert axon("knowledge", "rm", agent, "a").out == "a: was not there\n"
    assert axon("knowledge", "rm", agent, "a").status == 0


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", ".env", "a\nb", "\udcff", "modules"])
@pytest.mark.parametrize("verb", ["read", "write", "rm"])
def test_what_is_no_name_is_refused(agent, axon, given, verb, name):
    given(b"x")
    (agent / "modules/modules/knowledge").mkdir(parents=True)
    ended = axon("knowledge", verb, agent, name)
    assert ended.status == 1
    assert ended.err.startswith(("KNOWLEDGE_ESCAPE", "KNOWLEDGE_NOT_FOUND"))


def test_as_json_an_entry_must_be_text(agent, axon, given):
    given("\u00e9\n".encode())
    axon("knowledge", "write", agent, "a")
    assert json.loads(axon("knowledge", "read", agent, "a", "--json").out) == {"name": "a", "content": "\u00e9\n"}
    given(b"\xff")
    axon("knowledge", "write", agent, "a")
    assert axon("knowledge", "read", agent, "a", "--json").err.startswith("KNOWLEDGE_UNREADABLE")


def test_more_than_an_entry_may_have_is_refused(agent, axon, given):
    given(b"x" * 1_000_001)
    assert axon("knowledge", "write", agent, "a").err.startswith("KNOWLEDGE_TOO_LARGE")
    assert not (agent / "knowledge").exists()


def test_no_agent_is_said(tmp_path, axon, given):
    given(b"x")
    for words in (["list", tmp_path], ["read", tmp_path, "a"], ["write", tmp_path, "a"], ["rm", tmp_path, "a"]):
        assert axon("knowledge", *words).err.startswith("AGENT_NOT_FOUND")
    assert list(tmp_path.iterdir()) == []
