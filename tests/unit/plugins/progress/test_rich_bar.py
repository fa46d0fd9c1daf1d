"""The progress bar: what stands on the screen, what is left there, and that a file gets lines alone."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from counting import calls_of

import cntk as C
from cntk.logging import ProgressPrinter, RichProgressBar

pytest.importorskip("rich")

from rich.console import Console

from cntk.plugins.progress import live

CONTROL = re.compile(r"\x1b\[(\??\d*)(?:;\d+)*([A-Za-z])")
TIME = re.compile(r"[0-9.]+s \( *[0-9.]+ samples/s\)")


class Terminal(io.StringIO):
    """Text that a terminal gets."""

    def console(self, width: int = 100) -> Console:
        """A console on this terminal; what is printed goes there too from now on."""
        sys.stdout = self
        return Console(force_terminal=True, width=width)

    def isatty(self) -> bool:
        return True

    def screen(self) -> list[str]:
        """What stands on it; knows what rich writes to redraw some lines."""
        lines, row, column = [""], 0, 0
        for part in re.split(r"(\x1b\[\??[\d;]*[A-Za-z]|\r|\n)", self.getvalue()):
            command = CONTROL.fullmatch(part)
            if part == "\r":
                column = 0
            elif part == "\n":
                row, column = row + 1, 0
                lines.extend([""] * (row + 1 - len(lines)))
            elif command and command[2] == "A":
                row -= int(command[1] or 1)
            elif command and command[2] == "K":
                lines[row] = ""
            elif not command:
                lines[row] = lines[row].ljust(column)[:column] + part + lines[row][column + len(part) :]
                column += len(part)
        return [line.rstrip() for line in lines if line.strip()]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """Stands for the screen; every minibatch is drawn."""
    monkeypatch.setattr(live, "SECONDS_PER_DRAWING", 0.0)
    found = Terminal()
    yield found
    assert "\x1b[?25l" not in found.getvalue().rpartition("\x1b[?25h")[2], "the cursor is shown"


def tell(writer: Any, minibatches: int = 3, samples: int = 10) -> None:
    for _ in range(minibatches):
        writer.update_training(samples, 0.5 * samples, 0.25 * samples)


def lines(text: str) -> list[str]:
    return TIME.sub("TIME", text).splitlines()


def test_the_bar_shows_how_far_training_is(terminal: Terminal) -> None:
    bar = RichProgressBar(tag="[b]", num_epochs=4, epoch_size=1000, console=terminal.console())
    bar.write("Learning rate per minibatch", 0.125)
    tell(bar)
    rate, first, second = terminal.screen()
    assert rate == "Learning rate per minibatch: 0.125"
    assert re.fullmatch(r"\[\[b\]\] Epoch 1 of 4 [━╸╺]+ 30/1,000 samples [\d,]+/s \d+:\d\d:\d\d left", first)
    assert second == "  loss = 0.500000, metric = 25.00%, learning rate = 0.125"
    bar.summarize_training()
    assert lines("\n".join(terminal.screen())) == [rate, "Finished Epoch[1 of 4]: [[b]] loss = 0.500000 * 30, metric = 25.00% * 30 TIME;"]


def test_the_time_that_is_left(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(live, "monotonic", lambda: now[0])
    bar = RichProgressBar(num_epochs=3, epoch_size=400, console=terminal.console())
    for _ in range(3):
        tell(bar, 1)
        now[0] += 2.0
    assert terminal.screen()[0].endswith("30/400 samples 5/s 0:03:54 left"), "1170 samples at 5 a second"
    bar.close()


def test_an_epoch_is_as_long_as_the_one_before(terminal: Terminal) -> None:
    bar = RichProgressBar(console=terminal.console())
    tell(bar)
    assert re.fullmatch(r"Epoch 1 ━+ 30 samples [\d,]+/s", terminal.screen()[0])
    bar.summarize_training()
    tell(bar, 2)
    assert "Epoch 2 " in terminal.screen()[1]
    assert " 20/30 samples " in terminal.screen()[1]
    bar.close()


def test_what_is_printed_stands_above_the_bar(terminal: Terminal) -> None:
    bar, printer = RichProgressBar(freq=2, console=terminal.console()), ProgressPrinter(freq=2)
    for i in range(4):
        print("[bold]minibatch[/bold]", i)
        tell(bar, 1)
        tell(printer, 1)
    *above, first, _ = terminal.screen()
    printed = [f" Minibatch[{a:4d}-{a + 1:4d}]: loss = 0.500000 * 20, metric = 25.00% * 20;" for a in (1, 3)]
    words = [f"[bold]minibatch[/bold] {i}" for i in range(4)]
    assert above == [*words[:2], printed[0], printed[0], *words[2:], printed[1], printed[1]]
    assert first.startswith("Epoch 1 ")
    bar.summarize_training()
    assert terminal.screen()[:-1] == above


def test_bars_of_several_writers_stand_below_one_another(terminal: Terminal) -> None:
    console = terminal.console()
    bars = [RichProgressBar(tag=tag, console=console) for tag in "ab"]
    for bar in bars:
        tell(bar)
    assert [line[:4] for line in terminal.screen()] == ["[a] ", "  lo", "[b] ", "  lo"]
    bars[0].summarize_training()
    assert [line[:4] for line in terminal.screen()] == ["Fini", "[b] ", "  lo"]
    bars[1].close()
    assert len(terminal.screen()) == 1


def test_evaluation_has_a_bar_of_its_own(terminal: Terminal) -> None:
    bar = RichProgressBar(console=terminal.console(), metric_is_pct=False)
    tell(bar)
    bar.update_test(8, 2.0)
    assert re.match(r"Evaluation ━+ 8 samples", terminal.screen()[2])
    assert terminal.screen()[3] == "  metric = 0.250000"
    bar.summarize_test()
    assert terminal.screen()[0] == "Finished Evaluation [1]: Minibatch[1-1]: metric = 0.250000 * 8;"
    assert len(terminal.screen()) == 3
    bar.close()


def test_a_narrow_terminal_is_enough(terminal: Terminal) -> None:
    with RichProgressBar(num_epochs=2, epoch_size=100, console=terminal.console(24)) as bar:
        tell(bar)
        assert all(len(line) <= 24 for line in terminal.screen())


def test_the_bar_goes_with_its_writer(terminal: Terminal) -> None:
    bar = RichProgressBar(console=terminal.console())
    tell(bar)
    assert terminal.screen()
    del bar
    assert terminal.screen() == []


def test_the_bar_goes_at_the_end_of_a_with_statement(terminal: Terminal) -> None:
    with RichProgressBar(console=terminal.console()) as bar:
        tell(bar)
        assert terminal.screen()
    assert terminal.screen() == []
    assert sys.stdout is terminal
    tell(bar)
    assert sys.stdout is not terminal
    assert terminal.screen()[0].startswith("Epoch 1 "), "it comes back"
    bar.close()
    bar.close()
    assert sys.stdout is terminal


def test_an_error_that_ends_the_program_is_printed_in_place_of_the_bar(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, traceback: print(f"{kind.__name__}: {error}"))
    before = sys.excepthook
    bar = RichProgressBar(console=terminal.console())
    tell(bar)
    assert sys.excepthook != before
    sys.excepthook(ValueError, ValueError("no such data"), None)
    assert terminal.screen() == ["ValueError: no such data"]
    assert sys.excepthook == before
    assert isinstance(bar, RichProgressBar)


PROGRAM = """
import cntk as C
bar = C.logging.RichProgressBar()
bar.update_training(10, 5.0, 1.0)
print('a line')
raise ValueError('broken')
"""


def test_a_program_on_a_terminal() -> None:
    pty = pytest.importorskip("pty")
    control, screen = pty.openpty()
    settings = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.DEVNULL, stdout=screen, stderr=screen, env=settings) as program:
        os.close(screen)
        found = Terminal()
        while data := _read(control):
            found.write(data.decode())
    os.close(control)
    assert program.returncode == 1
    assert "Epoch 1 " in found.getvalue()
    shown = found.screen()
    assert shown[shown.index("a line") + 1] == "Traceback (most recent call last):"
    assert shown[-1] == "ValueError: broken"
    assert not any("Epoch" in line for line in shown)


def _read(control: int) -> bytes:
    try:
        return os.read(control, 65536)
    except OSError:  # Linux says so that the other end is closed
        return b""


def test_a_file_gets_the_lines_of_the_printer(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    printed = []
    for kind in (RichProgressBar, ProgressPrinter):
        writer = kind(freq=2, first=1, tag="t", num_epochs=3, test_freq=1)
        writer.write("Learning rate per minibatch", 0.1)
        tell(writer, 5)
        writer.summarize_training()
        writer.update_test(4, 1.0)
        writer.summarize_test()
        printed.append(lines(capsys.readouterr().out))
    assert printed[0] == printed[1]
    assert len(printed[0]) == 7
    assert "\x1b" not in "".join(printed[0])


def test_a_console_elsewhere_leaves_the_output_alone(capsys: pytest.CaptureFixture[str]) -> None:
    elsewhere = Terminal()
    with RichProgressBar(console=Console(file=elsewhere, force_terminal=True)) as bar:
        tell(bar)
        print("a line")
    assert capsys.readouterr().out == "a line\n"
    assert "Epoch 1" in elsewhere.getvalue()


def test_workers_but_the_first_show_nothing(terminal: Terminal) -> None:
    bar = RichProgressBar(freq=1, rank=1, console=terminal.console())
    tell(bar)
    bar.summarize_training()
    assert terminal.getvalue() == ""


def test_training_moves_the_bar(terminal: Terminal) -> None:
    x, y = C.input_variable(1), C.input_variable(1)
    loss = C.squared_error(C.layers.Dense(1, init=0)(x), y)
    data = np.ones((64, 1), np.float32)
    bar = RichProgressBar(num_epochs=2, epoch_size=64, console=terminal.console())
    loss.train((data, 2 * data), parameter_learners=[C.sgd(loss.parameters, 0.1)], max_epochs=2, callbacks=[bar])
    assert [line.partition(":")[0] for line in terminal.screen()] == [
        "Learning rate per minibatch",
        "Finished Epoch[1 of 2]",
        "Finished Epoch[2 of 2]",
    ]
    assert "32/64 samples" in terminal.getvalue()


def test_rich_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cntk.plugins.progress.live", None)
    with pytest.raises(ImportError, match=r"pip install 'opencntk\[rich\]'"):
        RichProgressBar()


def test_negative_frequencies_are_refused() -> None:
    with pytest.raises(ValueError, match="0 or more"):
        RichProgressBar(freq=-1)


def test_a_minibatch_that_is_not_drawn_costs_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "SECONDS_PER_DRAWING", 3600.0)
    with RichProgressBar(console=Console(file=Terminal(), force_terminal=True)) as bar:
        tell(bar, 10)
        calls = calls_of(lambda: tell(bar, 10))
    assert calls < 10 * 30
