import getpass
import os

import pytest

from axon.person import person


def test_a_person_has_a_name(monkeypatch):
    monkeypatch.setattr(getpass, "getuser", lambda: "ada")
    assert person() == "ada"


@pytest.mark.parametrize("error", [KeyError("uid"), OSError("no such user")])
def test_a_user_without_a_name_has_a_number(monkeypatch, error):
    def getuser():
        raise error

    monkeypatch.setattr(getpass, "getuser", getuser)
    assert person() == f"uid-{os.getuid()}"
