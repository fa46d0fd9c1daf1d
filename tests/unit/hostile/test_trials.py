"""What tries at random what no test says, ``tests/hostile``: it sees what it is there to see, and each trial passes a few cases."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from cntk.core.extension import plugins
from cntk.core.machine.self_check import are_usable

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "hostile"))
from cases import generator
from damaged_models import prepared, read_damaged
from found import HERE, find_trials
from guard import watched
from supervisor import Outcome, supervise
from targets import TARGETS


def outcome_of(folder: Path, body: str, seconds: float = 20, count: int = 5, settings: str = "") -> Outcome:
    """What becomes of a trial with this body."""
    lines = ['"""A trial."""', "import os, time", settings, "def trial(random):", textwrap.indent(textwrap.dedent(body), "    ")]
    (folder / "tried.py").write_text("\n".join(lines))
    return supervise(find_trials(folder)["tried"], seconds, 1, count)


@pytest.mark.parametrize("name", find_trials())
def test_trial_passes_a_few_cases(name: str) -> None:
    if name == "forks" and not are_usable():  # OpenBLAS is forked with its locks closed then, as by NumPy alone
        pytest.skip("compiled loops are switched off")
    outcome = supervise(find_trials()[name], 0.1, seed=7, count=3)
    if outcome.left_out:
        pytest.skip(outcome.left_out)
    assert outcome.cases >= 1
    assert not outcome.complaints


def test_every_trial_says_what_it_tries() -> None:
    assert all(trial.what for trial in find_trials().values())


def test_complaints_are_told_and_the_other_cases_tried(tmp_path: Path) -> None:
    outcome = outcome_of(
        tmp_path, "assert random.random() < 2, 'never'\nassert not os.path.exists('x'), 'once'\nopen('x', 'w').close()\nreturn 'fine'"
    )
    assert outcome.cases == 5
    assert outcome.kinds == {"fine": 1}
    assert [number for number, _ in outcome.complaints] == [1, 2, 3, 4]
    assert outcome.complaints[0][1] == "once  (tried.py:6)"


def test_other_errors_are_complaints_with_their_type(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, "return {}['key']", count=1)
    assert outcome.complaints == [(0, "KeyError: 'key'  (tried.py:5)")]


def test_a_crash_names_the_case_and_the_rest_is_tried(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, "if random.random() < 0.5: os.abort()")
    crashed = [number for number, _ in outcome.complaints]
    assert crashed == [number for number in range(5) if generator(1, "tried", number).random() < 0.5] != []
    assert outcome.cases == 5
    assert "signal SIGABRT" in outcome.complaints[0][1]
    assert "tried.py" in outcome.complaints[0][1]  # the stack at the crash


def test_an_exit_is_a_complaint(tmp_path: Path) -> None:
    assert "status 3" in outcome_of(tmp_path, "raise SystemExit(3)", count=1).complaints[0][1]


def test_a_hang_names_the_case_and_where_it_hangs(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, "time.sleep(60)", count=1, settings="LIMIT = 1.5")
    ((number, what),) = outcome.complaints
    assert number == 0
    assert "did not end in 1.5 s" in what
    assert "tried.py" in what


def test_memory_without_end_names_the_case(tmp_path: Path) -> None:
    body = "held = []\nwhile True:\n    held.append(b'x' * 2**22)\n    time.sleep(0.002)"
    outcome = outcome_of(tmp_path, body, count=1, settings="MEMORY = 0.25")
    ((number, what),) = outcome.complaints
    assert number == 0
    assert "the process holds 0." in what
    assert outcome.peak > 2**28


def test_what_a_trial_needs_and_what_begins_and_finishes_it(tmp_path: Path) -> None:
    assert "no_such_package" in outcome_of(tmp_path, "pass", settings="NEEDS = ('no_such_package',)").left_out
    settings = "SHARE = 2.5\ndef begin(): open('x', 'w').close()\ndef finish(): assert not os.path.exists('x'), 'it grew'"
    outcome = outcome_of(tmp_path, "assert os.path.exists('x')", settings=settings)
    assert outcome.complaints == [("finish", "it grew  (tried.py:5)")]
    assert find_trials(tmp_path)["tried"].share == 2.5


def test_a_trial_is_not_called_as_a_module_of_python(tmp_path: Path) -> None:
    (tmp_path / "numbers.py").write_text("def trial(random): pass")
    with pytest.raises(ValueError, match="Python has a module numbers"):
        find_trials(tmp_path)


def test_command_line(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text('"""Bad."""\ndef trial(random):\n    assert random.random() > 2, "small"\n')
    (tmp_path / "good.py").write_text('"""Good."""\ndef trial(random): pass\n')

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(HERE / "run.py"), "--folder", str(tmp_path), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, env=os.environ | {"TMPDIR": str(tmp_path)}, check=False)

    both = run("--seconds", "1", "--cases", "2", "--jobs", "2", "--json", str(tmp_path / "outcome.json"))
    assert both.returncode == 1
    assert "--seed 1 --case bad 1" in both.stdout
    bad, good = json.loads((tmp_path / "outcome.json").read_text())
    assert [bad["name"], bad["cases"], bad["complaints"]] == ["bad", 2, [[number, "small  (bad.py:3)"] for number in range(2)]]
    assert [good["name"], good["cases"], good["complaints"]] == ["good", 2, []]
    assert run("good", "--seconds", "0.1", "--cases", "1").returncode == 0
    assert "AssertionError: small" in run("--case", "bad", "1").stderr
    assert "no trial other" in run("other").stderr


# ---- damaged models ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TARGETS)
def test_readers_refuse_what_is_wrong(name: str) -> None:
    target, path = prepared(name)
    for number in range(100):
        outcome = read_damaged(target, path, np.random.default_rng(number))
        assert not outcome.wrong, f"{name}, file {number}: {outcome.wrong}"


def test_the_guard_sees_what_no_reader_does(tmp_path: Path) -> None:
    assert plugins.model_formats

    def wrong(read: object) -> str:
        return watched(read, "file", 10, True, (ValueError,)).wrong  # type: ignore[arg-type]

    def refuse() -> None:
        raise ValueError("file: byte 3: expected more")

    def burn() -> None:
        bytearray(2**26)

    assert not wrong(refuse)
    assert "import" in wrong(lambda: __import__("antigravity_of_the_fuzzer"))
    assert "open" in wrong(lambda: (tmp_path / "new").write_text("x"))
    assert "os.system" in wrong(lambda: __import__("os").system("true"))
    assert "MiB for 10 bytes" in wrong(burn)
    assert "KeyError" in wrong(lambda: {}["x"])
    assert "does not name the file" in wrong(lambda: int("x"))
