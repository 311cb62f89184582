"""Entries by name: listed in order, read as they are, replaced whole, and confined to the agent's own store."""

import os
import socket
import threading
from pathlib import Path

import pytest

from runtime.abi.errors import (
    AxonError,
    KnowledgeClash,
    KnowledgeEscape,
    KnowledgeNotFound,
    KnowledgeTooLarge,
    KnowledgeUnreadable,
    KnowledgeUnwritable,
)
from runtime.abi.knowledge import MAX_ENTRY_BYTES
from runtime.durable import files
from runtime.durable.locks import FileLock
from runtime.knowledge import knowledge as module
from runtime.knowledge.knowledge import LOCK, Knowledge

from .test_name import ESCAPES


def names(knowledge: Knowledge, **options) -> list[str]:
    return [entry.name for entry in knowledge.entries(**options)]


def every_file(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


# -- the catalogue


def test_an_entry_has_its_name_description_size_and_path(knowledge, put):
    path = put("knowledge/notes/dock.md", "---\ndescription: How to dock\n---\nSlowly.\n")
    (entry,) = knowledge.entries()
    assert (entry.name, entry.description) == ("notes/dock.md", "How to dock")
    assert entry.size == path.stat().st_size
    assert entry.path == str(path.resolve())
    assert Path(entry.path).read_text().endswith("Slowly.\n")


def test_the_size_is_in_bytes(knowledge, put):
    put("knowledge/a", "\u00e9" * 3)
    assert knowledge.entries()[0].size == 6


def test_the_order_is_bytewise_by_the_whole_name(knowledge, put):
    mixed = ["a/b", "a-b", "a.b", "B", "a", "b", "\u00e9", "z", "\U0001f600", "\uff5e", "10", "9", "ab/c"]
    for name in mixed:
        if name != "a":
            put(f"knowledge/{name}")
    wanted = sorted((name for name in mixed if name != "a"), key=str.encode)
    assert names(knowledge) == wanted


def test_match_is_a_substring_of_name_or_description_whatever_the_case(knowledge, put):
    put("knowledge/Deploy.md")
    put("knowledge/notes/x.md", "---\ndescription: About DEPLOYING\n---\n")
    put("knowledge/other.md", "deploy stands in the content alone")
    put("knowledge/strasse.md", "---\ndescription: Stra\u00dfe\n---\n")
    assert names(knowledge, match="dEpLoY") == ["Deploy.md", "notes/x.md"]
    assert names(knowledge, match="STRASSE") == ["strasse.md"]
    assert names(knowledge, match="d.*y") == []
    assert len(names(knowledge, match="")) == 4


def test_limit_cuts_after_the_order_so_it_is_a_stable_prefix(knowledge, put):
    for name in ("c", "a", "d", "b"):
        put(f"knowledge/{name}")
    assert [names(knowledge, limit=limit) for limit in (0, 2, 9)] == [[], ["a", "b"], ["a", "b", "c", "d"]]
    assert names(knowledge, match="b", limit=1) == ["b"]


def test_no_store_is_an_empty_catalogue(tmp_path):
    assert Knowledge(tmp_path).entries() == []


def test_hidden_files_and_those_being_written_are_not_listed(knowledge, put):
    put("knowledge/.gitkeep")
    put(f"knowledge/notes/{files.BEGUN}00.tmp")
    put("knowledge/.git/config")
    assert names(knowledge) == []
    assert knowledge.odd() == []


def test_a_description_is_read_again_when_a_person_changes_the_file(knowledge, put):
    for words in ("One", "Two"):
        put("knowledge/a.md", f"---\ndescription: {words}\n---\n")
        assert knowledge.entries()[0].description == words


def test_what_did_not_change_is_not_opened_again(knowledge, put, monkeypatch):
    put("knowledge/a.md", "---\ndescription: A\n---\n")
    monkeypatch.setattr("runtime.knowledge.catalogue.SETTLED_NS", -1)
    knowledge.entries()

    def fail(*_):
        raise AssertionError("it was opened")

    monkeypatch.setattr("runtime.knowledge.catalogue._described", fail)
    assert knowledge.entries()[0].description == "A"


# -- reading


def test_an_entry_is_read_as_it_is(knowledge, put, store):
    (store / "a.md").write_bytes("\ufeffone\r\ntwo\rthree\n\u00e9\0".encode())
    assert knowledge.read("a.md") == "\ufeffone\r\ntwo\rthree\n\u00e9\0"


def test_a_missing_entry_throws(knowledge, put):
    put("knowledge/notes/a.md")
    for name in ("b.md", "notes", "notes/b.md", "no/such/folder", "notes/a.md/b"):
        with pytest.raises(KnowledgeNotFound):
            knowledge.read(name)


def test_a_file_that_a_person_replaces_is_simply_the_new_content(knowledge, put):
    put("knowledge/a.md", "old")
    assert knowledge.read("a.md") == "old"
    put("knowledge/a.md", "new")
    assert knowledge.read("a.md") == "new"


def test_what_is_no_text_is_refused_by_name_and_its_bytes_are_there(knowledge, store):
    (store / "a.png").write_bytes(b"ab\xff")
    with pytest.raises(KnowledgeUnreadable, match="byte 2"):
        knowledge.read("a.png")
    assert knowledge.read_bytes("a.png") == b"ab\xff"
    assert names(knowledge) == ["a.png"]


def test_a_larger_entry_is_listed_and_not_read(knowledge, put):
    put("knowledge/a", "x" * MAX_ENTRY_BYTES)
    put("knowledge/b", "x" * (MAX_ENTRY_BYTES + 1))
    assert len(knowledge.read("a")) == MAX_ENTRY_BYTES
    with pytest.raises(KnowledgeTooLarge):
        knowledge.read("b")
    assert len(knowledge.read_bytes("b")) == MAX_ENTRY_BYTES + 1
    assert names(knowledge) == ["a", "b"]


# -- writing and removing


def test_what_is_written_is_there_with_its_folders(knowledge, store):
    knowledge.write("notes/2026/a.md", b"one")
    knowledge.write("notes/2026/a.md", b"two")
    assert (store / "notes/2026/a.md").read_bytes() == b"two"
    assert every_file(store) == ["notes/2026/a.md"]


def test_a_store_that_was_removed_is_made_again(knowledge, store):
    store.rmdir()
    knowledge.write("a", b"x")
    assert knowledge.read("a") == "x"


def test_removing_is_repeatable_and_says_whether_there_was_one(knowledge, put, store):
    put("knowledge/notes/deep/a.md")
    put("knowledge/notes/b.md")
    assert knowledge.remove("notes/deep/a.md") is True
    assert knowledge.remove("notes/deep/a.md") is False
    assert knowledge.remove("never/was") is False
    assert knowledge.remove("notes") is False
    assert every_file(store) == ["notes/b.md"]
    assert not (store / "notes/deep").exists()


def test_a_name_is_free_again_when_the_entries_below_it_are_gone(knowledge):
    knowledge.write("notes/a", b"x")
    with pytest.raises(KnowledgeClash):
        knowledge.write("notes", b"x")
    knowledge.remove("notes/a")
    knowledge.write("notes", b"x")
    with pytest.raises(KnowledgeClash):
        knowledge.write("notes/a", b"x")


def test_an_entry_too_large_is_not_written(knowledge, store):
    knowledge.write("a", b"x" * MAX_ENTRY_BYTES)
    with pytest.raises(KnowledgeTooLarge):
        knowledge.write("a", b"y" * (MAX_ENTRY_BYTES + 1))
    assert (store / "a").read_bytes()[:1] == b"x"


@pytest.mark.parametrize("step", ["fsync", "rename"])
def test_a_failure_leaves_the_previous_content_and_nothing_beside_it(knowledge, store, monkeypatch, step):
    knowledge.write("a", b"one")

    def fail(*_, **__):
        raise OSError(5, "on purpose")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(KnowledgeUnwritable, match="on purpose"):
        knowledge.write("a", b"two")
    assert (store / "a").read_bytes() == b"one"
    assert every_file(store) == ["a"]


def test_every_step_of_a_write_is_synced_before_the_next(knowledge, monkeypatch):
    steps: list[str] = []
    sync, rename, mkdir = os.fsync, os.rename, os.mkdir
    kind = lambda fd: "folder" if os.path.isdir(f"/proc/self/fd/{fd}") else "file"  # noqa: E731
    knowledge.write("first", b"so that data/ is there")
    monkeypatch.setattr(os, "fsync", lambda fd: (steps.append(kind(fd)), sync(fd))[1])
    monkeypatch.setattr(os, "rename", lambda *a, **k: (steps.append("rename"), rename(*a, **k))[1])
    monkeypatch.setattr(os, "mkdir", lambda *a, **k: (steps.append("mkdir"), mkdir(*a, **k))[1])
    knowledge.write("new/a", b"x")
    knowledge.remove("new/a")
    assert steps == ["mkdir", "folder", "file", "rename", "folder", "folder", "folder"]


def test_a_disk_that_is_nearly_full_keeps_its_room_for_the_log(knowledge, monkeypatch):
    monkeypatch.setattr("runtime.knowledge.corpus.free_bytes", lambda _: 1024)
    with pytest.raises(KnowledgeUnwritable, match="kept for the log"):
        knowledge.write("a", b"x")


def test_permissions_of_what_is_replaced_are_kept(knowledge, put):
    path = put("knowledge/a")
    path.chmod(0o640)
    knowledge.write("a", b"y")
    knowledge.write("n/b", b"y")
    assert path.stat().st_mode & 0o777 == 0o640
    assert (path.parent / "n/b").stat().st_mode & 0o777 == 0o644
    assert (path.parent / "n").stat().st_mode & 0o777 == 0o755


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
def test_what_root_writes_belongs_to_the_owner_of_the_place(knowledge, store):
    os.chown(store, 12345, 12345)
    knowledge.write("n/a", b"x")
    assert {(store / name).stat().st_uid for name in ("n", "n/a")} == {12345}


def test_leftovers_of_a_cut_are_swept_and_nothing_else(knowledge, put, store):
    put(f"knowledge/notes/{files.BEGUN}00.tmp")
    put("knowledge/.hidden.tmp")
    put("knowledge/a")
    knowledge.sweep()
    assert every_file(store) == [".hidden.tmp", "a"]


# -- confinement


@pytest.mark.parametrize("name", ESCAPES.values(), ids=ESCAPES.keys())
def test_every_verb_refuses_what_is_no_name(knowledge, agent, name):
    before = every_file(agent.parent)
    for act in (knowledge.read, knowledge.read_bytes, lambda n: knowledge.write(n, b"x"), knowledge.remove):
        with pytest.raises(KnowledgeEscape):
            act(name)
    assert every_file(agent.parent) == before


@pytest.mark.parametrize("link", ["a.md", "folder", "store"])
def test_no_link_is_followed_anywhere_on_the_way(agent, store, tmp_path, link):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.md").write_text("secret")
    if link == "a.md":
        (store / "a.md").symlink_to(outside / "a.md")
    elif link == "folder":
        (store / "folder").symlink_to(outside)
    else:
        store.rmdir()
        store.symlink_to(outside)
    knowledge, name = Knowledge(agent), "folder/a.md" if link == "folder" else "a.md"
    for act in (knowledge.read, knowledge.read_bytes, lambda n: knowledge.write(n, b"x"), knowledge.remove):
        with pytest.raises(KnowledgeEscape):
            act(name)
    if link != "store":
        assert knowledge.entries() == []
        assert [(Path(path).name, why) for path, why in knowledge.odd()] == [(link, "is a link, which isn't followed")]
    assert (outside / "a.md").read_text() == "secret"
    assert every_file(outside) == ["a.md"]


def test_a_folder_that_turns_into_a_link_on_the_way_leads_nowhere(knowledge, put, store, tmp_path, monkeypatch):
    """The race that a check before an open would lose: the folder is swapped between the two."""
    put("knowledge/notes/a.md", "mine")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/a.md").write_text("secret")
    from runtime.knowledge import descent

    real = descent.open_folder

    def swapped(folder: int, name: str) -> int:
        (store / "notes").rename(store / "notes-away")
        (store / "notes").symlink_to(tmp_path / "outside")
        return real(folder, name)

    monkeypatch.setattr(descent, "open_folder", swapped)
    with pytest.raises(AxonError):
        knowledge.write("notes/a.md", b"x")
    assert (tmp_path / "outside/a.md").read_text() == "secret"


ALIKE = [
    ("notes/a.md", "Notes/a.md"),
    ("notes/a.md", "notes/A.md"),
    ("notes/a.md", "notes/\u0430.md"),
    ("notes/a.md", "n\u043etes/b.md"),
    ("notes/a.md", "notes/\uff41.md"),
    ("notes/stra\u00dfe", "notes/strasse"),
]


@pytest.mark.parametrize(("there", "asked"), ALIKE)
def test_a_look_alike_of_what_is_there_is_refused_not_cleaned(knowledge, put, store, there, asked):
    put(f"knowledge/{there}", "mine")
    for act in (knowledge.read, lambda n: knowledge.write(n, b"x"), knowledge.remove):
        with pytest.raises(KnowledgeEscape, match="looks like"):
            act(asked)
    assert every_file(store) == [there]


def test_the_decomposed_form_of_an_entry_is_refused(knowledge, put, store):
    put("knowledge/caf\u00e9.md", "mine")
    with pytest.raises(KnowledgeEscape, match="NFC"):
        knowledge.write("cafe\u0301.md", b"x")
    assert every_file(store) == ["caf\u00e9.md"]


def test_two_look_alikes_that_a_person_made_are_two_entries_and_are_told(knowledge, put):
    put("knowledge/a.md", "small")
    put("knowledge/A.md", "large")
    assert (knowledge.read("a.md"), knowledge.read("A.md")) == ("small", "large")
    assert [why for _, why in knowledge.odd()] == ["looks like A.md"]


def test_what_is_no_file_is_never_opened_and_is_told(knowledge, store):
    os.mkfifo(store / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.open(store, os.O_RDONLY)
        listener.bind(f"/proc/self/fd/{here}/socket")
        os.close(here)
    assert names(knowledge) == []
    for name in ("pipe", "socket"):
        for act in (knowledge.read, lambda n: knowledge.write(n, b"x"), knowledge.remove):
            with pytest.raises(KnowledgeUnreadable, match="no ordinary file"):
                act(name)
    assert sorted(Path(path).name for path, _ in knowledge.odd()) == ["pipe", "socket"]


def test_names_on_the_disk_that_are_none_are_told_and_not_listed(knowledge, store):
    for name in (b"\xff\xfe", b"a\\b", b"trailing.", "cafe\u0301".encode()):
        (store / os.fsdecode(name)).write_bytes(b"x")
    assert names(knowledge) == []
    assert len(knowledge.odd()) == 4


# -- modules


@pytest.fixture
def with_module(agent, put) -> Knowledge:
    put("modules/arm.py", "")
    put("modules/arm/knowledge/joints.md", "---\ndescription: The joints\n---\n")
    put("modules/arm/knowledge/deep/er.md", "deep")
    put("modules/no-module/knowledge/x.md")
    put("modules/_private/knowledge/x.md")
    put("modules/plain/x.md")
    return Knowledge(agent)


def test_a_modules_corpus_has_names_of_its_own(with_module, agent, put):
    put("knowledge/axon.md")
    put("knowledge/zoo.md")
    found = with_module.entries()
    assert [entry.name for entry in found] == ["arm/deep/er.md", "arm/joints.md", "axon.md", "zoo.md"]
    assert found[1].description == "The joints"
    assert found[1].path == str((agent / "modules/arm/knowledge/joints.md").resolve())
    assert with_module.read("arm/deep/er.md") == "deep"


def test_a_modules_corpus_is_read_only(with_module, agent):
    before = every_file(agent)
    for name in ("arm/joints.md", "arm/new.md", "arm"):
        with pytest.raises(KnowledgeEscape, match="module"):
            with_module.write(name, b"x")
        with pytest.raises(KnowledgeEscape, match="module"):
            with_module.remove(name)
    assert every_file(agent) == before


def test_missing_and_escaping_names_of_a_corpus(with_module):
    for name in ("arm", "arm/none.md"):
        with pytest.raises(KnowledgeNotFound):
            with_module.read(name)
    for name in ("arm/../arm.py", "arm/../../../secret", "ARM/joints.md", "\u0430rm/joints.md"):
        with pytest.raises(KnowledgeEscape):
            with_module.read(name)


def test_an_own_entry_under_a_modules_name_is_out_of_sight_and_told(with_module, put):
    put("knowledge/arm/mine.md")
    put("knowledge/ARM/mine.md")
    assert "arm/mine.md" not in names(with_module)
    assert "ARM/mine.md" not in names(with_module)
    assert [Path(path).name for path, why in with_module.odd() if "out of sight" in why] == ["ARM", "arm"]


def test_a_corpus_behind_a_link_is_none(agent, put, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("x")
    (agent / "modules/arm").mkdir(parents=True)
    (agent / "modules/arm/knowledge").symlink_to(outside)
    assert names(Knowledge(agent)) == []


# -- several at once


def test_writers_of_two_processes_wait_for_each_other(knowledge, agent, monkeypatch):
    monkeypatch.setattr(module, "WAIT_S", 0.05)
    (agent / "data").mkdir()
    lock = FileLock(agent / "data" / LOCK)
    assert lock.acquire()
    with pytest.raises(KnowledgeUnwritable, match="somebody else"):
        knowledge.write("a", b"x")
    lock.release()
    knowledge.write("a", b"x")


def test_a_reader_beside_writers_sees_whole_entries_only(agent):
    whole = {bytes([letter]) * 100_000 for letter in b"ab"}
    Knowledge(agent).write("a", min(whole))
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            for content in whole:
                Knowledge(agent).write("a", content)

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    knowledge = Knowledge(agent)
    seen = {knowledge.read("a").encode() for _ in range(200)}
    catalogue = {(entry.name, entry.size) for _ in range(50) for entry in knowledge.entries()}
    done.set()
    for thread in threads:
        thread.join(20)
    assert seen <= whole
    assert catalogue == {("a", 100_000)}


def test_one_of_two_look_alikes_written_at_once_is_refused(agent):
    outcomes: list[str] = []

    def write(name: str) -> None:
        try:
            Knowledge(agent).write(name, b"x")
            outcomes.append("written")
        except KnowledgeEscape:
            outcomes.append("refused")

    for number in range(20):
        pair = [threading.Thread(target=write, args=(f"{name}{number}",)) for name in ("n", "N")]
        for thread in pair:
            thread.start()
        for thread in pair:
            thread.join(20)
    assert sorted(outcomes) == ["refused"] * 20 + ["written"] * 20
