"""Files that somebody else may have written are told from others, by themselves and by the folders that they are reached through."""

from __future__ import annotations

import os
import stat
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cntk.core.storage import cache_folder, trusted
from cntk.core.storage.trusted import Untrusted, make_folder, open_trusted, require_trusted, write_trusted

pytestmark = pytest.mark.skipif(not trusted.TELLS_OWNERS, reason="this system does not tell who owns a file")

NOBODY = 65534


@pytest.fixture(autouse=True)
def usual_mask() -> Iterator[None]:
    """The user's mask that most systems have."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "above" / "folder" / "file"
    made.parent.mkdir(parents=True)
    made.write_bytes(b"code")
    return made


def belongs_to_another(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a file belong to somebody else, or look so where only the superuser can give files away."""
    if os.geteuid() == 0:
        os.chown(place, NOBODY, NOBODY)
        return
    number = os.stat(place).st_ino
    for name in ("fstat", "lstat"):
        real = getattr(os, name)

        def told(of: Any, real: Callable[[Any], os.stat_result] = real) -> os.stat_result:
            found = real(of)
            return os.stat_result((*found[:4], NOBODY, *found[5:10])) if found.st_ino == number else found

        monkeypatch.setattr(trusted.os, name, told)


def test_a_file_of_the_user_is_read(file: Path) -> None:
    with open_trusted(file) as opened:
        assert opened.read() == b"code"


@pytest.mark.parametrize("place", ["file", "folder", "above"])
def test_a_file_of_another_user_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    found = {"file": file, "folder": file.parent, "above": file.parents[1]}[place]
    belongs_to_another(found, monkeypatch)
    with pytest.raises(Untrusted, match=f"{found}: it belongs to user {NOBODY}"):
        open_trusted(file)


@pytest.mark.parametrize("mode", [0o666, 0o602, 0o777])
def test_a_file_that_all_may_write_to_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(Untrusted, match=rf"file: others than user .* may write to it \(mode {mode:04o}\)"):
        open_trusted(file)


@pytest.mark.parametrize("place", ["folder", "above"])
def test_a_folder_that_all_may_write_to_is_refused(file: Path, place: str) -> None:
    found = file.parent if place == "folder" else file.parents[1]
    found.chmod(0o777)
    for ask in (open_trusted, lambda file: require_trusted(file.parent)):
        with pytest.raises(Untrusted, match=f"{place}: others than user .* may write to it"):
            ask(file)


def test_a_folder_where_files_stay_their_owners_is_shared(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.parent.chmod(0o1777)
    open_trusted(file).close()
    require_trusted(file.parent)
    with pytest.raises(Untrusted, match="others may put files into it"):
        require_trusted(file.parent, alone=True)
    os.link(file, file.with_name("another name"))
    with pytest.raises(Untrusted, match="it has several names"):
        open_trusted(file)
    os.unlink(file.with_name("another name"))
    belongs_to_another(file, monkeypatch)
    with pytest.raises(Untrusted, match="it belongs to user"):
        open_trusted(file)


@pytest.mark.parametrize(("own", "members", "passes"), [(True, [], True), (True, ["mallory"], False), (False, [], False)])
def test_a_group_may_write_that_has_nobody_else(
    file: Path, monkeypatch: pytest.MonkeyPatch, own: bool, members: list[str], passes: bool
) -> None:
    grp, pwd = pytest.importorskip("grp"), pytest.importorskip("pwd")
    file.parent.chmod(0o775)
    status = file.parent.stat()
    monkeypatch.setattr(pwd, "getpwuid", lambda number: pwd.struct_passwd(("me", "", number, status.st_gid, "", "/", "")))
    monkeypatch.setattr(grp, "getgrgid", lambda number: grp.struct_group(("me" if own else "staff", "", number, members)))
    if passes:
        open_trusted(file).close()
        return
    with pytest.raises(Untrusted, match="folder: others than user"):
        open_trusted(file)


def test_links_and_pipes_are_not_read(file: Path) -> None:
    link = file.with_name("link")
    link.symlink_to(file)
    os.mkfifo(file.with_name("pipe"))
    for name in ("link", "pipe", "", "missing"):
        with pytest.raises(OSError) as raised:  # noqa: PT011  (any of them)
            open_trusted(file.parent / name)
        assert not isinstance(raised.value, Untrusted)


def test_the_folders_behind_a_link_are_those_that_count(file: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(file.parent)
    open_trusted(tmp_path / "link" / "file").close()
    file.parent.chmod(0o777)
    with pytest.raises(Untrusted, match="above/folder: others"):
        open_trusted(tmp_path / "link" / "file")


def test_what_lies_beside_a_believed_file_need_not_be_guarded_better(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = file.with_name("text")
    text.write_text("text")
    file.parents[1].chmod(0o777)
    open_trusted(file, text).close()
    file.parent.chmod(0o777)
    file.chmod(0o666)
    open_trusted(file, text).close()  # others can exchange the text, too
    file.parent.chmod(0o1777)
    with pytest.raises(Untrusted):
        open_trusted(file, text)
    file.chmod(0o644)
    open_trusted(file, text).close()
    belongs_to_another(file, monkeypatch)
    with pytest.raises(Untrusted, match="it belongs to"):
        open_trusted(file, text)


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o022, 0o077])
def test_what_is_written_is_trusted_whatever_the_mask(tmp_path: Path, mask: int) -> None:
    os.umask(mask)
    file = tmp_path / "new" / "newer" / "file"
    write_trusted(file, [b"co", b"de"])
    with open_trusted(file) as opened:
        assert opened.read() == b"code"
    assert stat.S_IMODE(file.stat().st_mode) == 0o644 & ~mask
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (file.parent, file.parents[1])] == [0o700 & ~mask] * 2
    assert list(file.parent.iterdir()) == [file]


def test_nothing_is_written_where_others_could_exchange_it(file: Path) -> None:
    file.parent.chmod(0o777)
    with pytest.raises(Untrusted):
        write_trusted(file.with_name("new"), [b"code"])
    assert list(file.parent.iterdir()) == [file]


def test_nothing_is_left_of_what_could_not_be_written(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"co"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_trusted(tmp_path / "file", pieces())
    assert not list(tmp_path.iterdir())


def test_a_file_in_the_place_of_a_folder(file: Path) -> None:
    with pytest.raises(OSError):  # noqa: PT011  (of either kind)
        make_folder(file / "folder")


def test_a_warning_is_given_once(recwarn: pytest.WarningsRecorder) -> None:
    warnings.simplefilter("always")
    for _ in range(3):
        trusted.warn_of("/a/file", "it belongs to user 7", "It is recreated")
    assert [str(one.message) for one in recwarn] == ["/a/file is not trusted: it belongs to user 7. It is recreated"]


# ---- where the user's folder is ----


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="folders are others there")
@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"HOME": "/home/me"}, "/home/me/.cache/cntk"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": ""}, "/home/me/.cache/cntk"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": "relative"}, "/home/me/.cache/cntk"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": "/caches"}, "/caches/cntk"),
        ({"HOME": ""}, "/registered/.cache/cntk"),
        ({"HOME": "nowhere"}, "/registered/.cache/cntk"),
        ({}, "/registered/.cache/cntk"),
    ],
)
def test_the_users_folder(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], folder: str) -> None:
    import pwd

    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(pwd, "getpwuid", lambda number: pwd.struct_passwd(("me", "", number, 1, "", "/registered", "")))
    assert str(cache_folder.user_cache("cntk")) == folder


def test_a_user_without_a_home_has_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(cache_folder, "_registered_home", lambda: None)
    assert cache_folder.user_cache("cntk") is None
