from pathlib import Path

import apsw
import pytest

from axon.checks.storage import WANTED, compare, database, file_system, settings, sqlite
from runtime.durable.database import open_writer


@pytest.mark.parametrize(("version", "state"), [("3.51.3", "held"), ("3.54.1", "held"), ("3.40.1", "not held")])
def test_a_sqlite_with_the_corruption_bug_is_not_held(version, state):
    assert sqlite(version).state == state


def test_the_library_in_use_is_a_good_one():
    assert sqlite(apsw.sqlite_lib_version()).state == "held"


def test_memory_is_no_place_for_a_log():
    check = file_system(Path("/dev/shm"))
    assert (check.state, check.essential) == ("not held", True)
    assert "--volatile-data" in check.fix


def test_the_logs_settings_are_in_force_where_data_lies(tmp_path):
    checks = {check.name: check for check in database(tmp_path)}
    assert checks["log settings"].state == "held", checks["log settings"].detail
    assert "psow=0" in checks["log settings"].detail
    assert "ms" in checks["commit"].detail


def test_the_probe_leaves_nothing_behind(tmp_path):
    list(database(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_not_held(tmp_path):
    (check,) = database(tmp_path / "missing")
    assert (check.state, check.essential) == ("not held", True)


def test_psow_as_sqlite_has_it_by_default_is_found_out(tmp_path):
    connection = apsw.Connection(str(tmp_path / "x.db"))
    found = settings(connection)
    connection.close()
    check = compare(found)
    assert found["psow"] == 1
    assert check.state == "not held"
    assert "psow=1" in check.detail
    assert "journal_mode=delete" in check.detail


def test_every_setting_is_compared(tmp_path):
    connection = open_writer(tmp_path / "x.db")
    found = settings(connection)
    connection.close(True)
    assert compare(found).state == "held"
    for name in (*WANTED, "psow"):
        assert name in compare({**found, name: 77}).detail
