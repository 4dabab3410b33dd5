"""Printing, apart from any command: terminals, widths, times."""

from __future__ import annotations

import io
import sys
import threading
import time

import pytest

from federator.cli.output import Column, Printer, ago, counted, lasted, shown
from federator.cli.progress import Progress
from federator.sync import Step


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a\x1b[0mb", "a\\x1b[0mb"), ("a\nb", "a\\nb"), ("[b]🦆[/b]", "[b]🦆[/b]"), ("\u202eabc", "\\u202eabc"), ("\udc80", "\\udc80"),
        ("\x9b31m", "\\x9b31m"),
    ],
)  # fmt: skip
def test_names_cannot_steer_a_terminal(text: str, printed: str) -> None:
    assert shown(text) == printed


@pytest.mark.parametrize(("width", "lines"), [("60", 4), ("20", 4)])
def test_a_table_loses_nothing_on_a_terminal(monkeypatch: pytest.MonkeyPatch, width: str, lines: int) -> None:
    monkeypatch.setenv("COLUMNS", width)
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    name = "[b]" + "x" * 80
    Printer(json=False).table([Column("name", wide=True), Column("state"), Column("long enough")], [(name, "ok", "y" * 15)])
    printed = stream.getvalue()
    assert "".join(printed.split()).count("x") == 80
    assert "y" * 15 in printed
    assert len(printed.splitlines()) <= lines


def test_a_line_on_a_terminal_has_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stdout", stream)
    Printer(json=False).line("[bold]:smile: 'x' 12[/bold]", style=None)
    assert stream.getvalue() == "[bold]:smile: 'x' 12[/bold]\n"


def test_lengths_and_counts() -> None:
    assert [lasted(n) for n in (0.02, 0.42, 12.4, 90, 7200, 200_000)] == ["20 ms", "0.4 s", "12 s", "2 min", "2 h", "2 days"]
    assert ago(time.time() - 3 * 60) == "3 min ago"
    assert (counted(1, "table"), counted(1204, "table")) == ("1 table", "1,204 tables")


def test_progress_says_what_ended_and_counts_what_was_made(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(quiet=False) as progress:
        progress(Step("crawl", "[b]lake"))
        progress(Step("crawl", "[b]lake", "ok", "2 tables", 1.24))
        progress(Step("change", "declare_table copy$a", "done"))
        progress(Step("change", "declare_table copy$b", "skipped", "the target has changed"))
    assert capsys.readouterr().err == (
        "crawl    [b]lake  ok  2 tables  (1.2 s)\n         declare_table copy$b  skipped  the target has changed\n"
    )


def test_what_takes_long_gives_a_sign(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(quiet=False) as progress:
        progress(Step("crawl", "lake"))
        said, end = "", time.monotonic() + 60
        while not said.endswith("\n") and time.monotonic() < end:
            time.sleep(0.1)
            said += capsys.readouterr().err
        progress(Step("crawl", "lake", "ok"))
    assert said.startswith("crawl    lake  ")
    assert said.endswith("...\n")


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(quiet=True) as progress:
        progress(Step("crawl", "lake"))
        progress(Step("crawl", "lake", "failed", "broken"))
    assert capsys.readouterr().err == ""


def test_a_stopped_run_begins_no_further_step(capsys: pytest.CaptureFixture[str]) -> None:
    stop = threading.Event()
    with Progress(quiet=False, stop=stop) as progress:
        progress(Step("crawl", "lake"))
        stop.set()
        progress(Step("change", "declare_table copy$a", "done"))
        progress(Step("crawl", "lake", "failed", "cancelled"))
        with pytest.raises(KeyboardInterrupt):
            progress(Step("plan", "nightly"))
    assert capsys.readouterr().err == "crawl    lake  stopped\n"
