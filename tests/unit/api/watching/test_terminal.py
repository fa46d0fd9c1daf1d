"""Curves as letters: where dots are, gaps, and what is no letter."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cntk.cli import main
from cntk.logging import TensorBoardProgressWriter
from cntk.watching.runs import Runs
from cntk.watching.terminal import drawn, plain


def shown(folder: Path, width: int = 40) -> list[str]:
    runs = Runs(str(folder))
    runs.refresh()
    return plain(drawn(runs, width, 0.0)).split("\n")


def write(folder: Path, values: list[float], tag: str = "loss") -> None:
    writer = TensorBoardProgressWriter(log_dir=str(folder))
    for step, value in enumerate(values, 1):
        writer.write_value(tag, value, step)


def test_a_rising_line_goes_from_the_lower_left_to_the_upper_right(tmp_path: Path) -> None:
    write(tmp_path, [1.0, 2.0])
    lines = shown(tmp_path)
    assert lines[0] == "loss  2"
    assert lines[1].startswith("         2 ")
    assert lines[8].startswith("         1 ")
    assert lines[1].rstrip()[-1] != " "
    assert [len(line.rstrip()) for line in lines[1:9]] == sorted((len(line.rstrip()) for line in lines[1:9]), reverse=True)
    assert lines[9].split() == ["1", "2"]
    assert all(len(line) <= 40 for line in lines)


@pytest.mark.parametrize("values", [[math.nan], [1.0], [1.0, math.nan, 1.0], [math.inf, 2.0], [-1e38, 1e38]])
def test_gaps_and_single_values(tmp_path: Path, values: list[float]) -> None:
    write(tmp_path, values)
    dots = [letter for line in shown(tmp_path)[1:9] for letter in line if "\u2800" < letter <= "\u28ff"]
    assert bool(dots) == any(map(math.isfinite, values))


def test_names_do_not_command_the_terminal(tmp_path: Path) -> None:
    write(tmp_path, [1.0], tag="\x1b]0;title\x07")
    assert "\x1b" not in "".join(shown(tmp_path))


def test_a_terminal_without_braille_gets_stars(tmp_path: Path) -> None:
    write(tmp_path, [1.0, 2.0], tag="é")
    runs = Runs(str(tmp_path))
    runs.refresh()
    text = plain(drawn(runs, 40, 0.0), "ascii")
    assert text.isascii()
    assert "*" in text


def test_an_empty_folder_and_wrong_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(tmp_path)]) == 0
    assert "no numbers yet" in capsys.readouterr().out
    assert main(["watch", str(tmp_path / "none")]) == 1
    assert "there is no folder" in capsys.readouterr().err
    for option, value in (("--port", "99999"), ("--smoothing", "1"), ("--seconds", "0")):
        with pytest.raises(SystemExit) as ended:
            main(["watch", str(tmp_path), option, value])
        assert ended.value.code == 2
        assert option in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no terminals to try it on")
@pytest.mark.parametrize("has_rich", [True, False])
def test_a_terminal_is_drawn_again_until_it_is_interrupted(tmp_path: Path, has_rich: bool) -> None:
    if has_rich:
        pytest.importorskip("rich", reason="rich is not installed")
    write(tmp_path, [1.0, 2.0])
    hidden = "" if has_rich else "sys.modules['rich.live'] = None"
    arguments = ["watch", str(tmp_path), "--seconds", "0.1", "--width", "40"]
    heard = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)"  # shells have what they start behind ignore it
    program = f"import sys\n{heard}\n{hidden}\nfrom cntk.cli import main\nsys.exit(main({arguments!r}))"
    ours, theirs = os.openpty()
    with subprocess.Popen([sys.executable, "-c", program], stdout=theirs, stdin=theirs) as process:
        os.close(theirs)
        text = b""
        while b"loss" not in text:
            text += os.read(ours, 4096)
        write(tmp_path, [5.0], tag="second")
        while b"second" not in text:
            text += os.read(ours, 4096)
        process.send_signal(signal.SIGINT)
        while True:
            try:
                if not os.read(ours, 4096):
                    break
            except OSError:
                break
        assert process.wait(timeout=60) == 0
    os.close(ours)
