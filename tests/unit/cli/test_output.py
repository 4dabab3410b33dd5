"""Printing without a command: terminals, widths, times."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
import threading
import time
from pathlib import Path

import pytest
from rich.cells import cell_len

from federator.cli.documents import Output, format_document
from federator.cli.printer import Printer, escape_text, format_age, format_duration
from federator.cli.progress import ProgressDisplay
from federator.cli.terminal import Column, cut_middle, fits, wrap_line
from federator.runtime.text import format_count
from federator.stages.result import ProgressEvent


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def print_to(monkeypatch: pytest.MonkeyPatch, width: str, stream: io.StringIO) -> io.StringIO:
    """Return ``stream``, which is the standard output now, without colours and with so many columns."""
    monkeypatch.setenv("COLUMNS", width)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stdout", stream)
    return stream


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a\x1b[0mb", "a\\x1b[0mb"), ("a\nb", "a\\nb"), ("[b]🦆[/b]", "[b]🦆[/b]"), ("\u202eabc", "\\u202eabc"), ("\udc80", "\\udc80"),
        ("\x9b31m", "\\x9b31m"),
    ],
)  # fmt: skip
def test_names_cannot_steer_a_terminal(text: str, printed: str) -> None:
    assert escape_text(text) == printed


def test_no_format_for_programs_steers_a_terminal_or_a_spreadsheet() -> None:
    names = ["=cmd()", "-dash", "\u202egpj.exe", "\x9b31mred", "\x1b[31m", "two\nlines", "\ud800", "plain, 'quoted'", '"']
    document = {"tables": [{"name": name, "location": None} for name in names]}
    for output in (Output.JSON, Output.JSONL, Output.CSV):
        text = format_document(document, output, "tables")
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e\ud800]", text)
    assert json.loads(format_document(document, Output.JSON, "tables")) == document
    lines = format_document(document, Output.JSONL, "tables").splitlines()
    assert [json.loads(line)["name"] for line in lines] == names
    rows = list(csv.DictReader(io.StringIO(format_document(document, Output.CSV, "tables"))))
    assert [row["name"] for row in rows] == [
        "'=cmd()", "'-dash", "\\u202egpj.exe", "\\x9b31mred", "\\x1b[31m", "two\nlines", "\\ud800", "plain, 'quoted'", '"',
    ]  # fmt: skip


@pytest.mark.parametrize(("width", "lines"), [("60", 4), ("20", 5)])
def test_a_table_loses_nothing_on_a_terminal(monkeypatch: pytest.MonkeyPatch, width: str, lines: int) -> None:
    stream = print_to(monkeypatch, width, Terminal())
    name = "[b]" + "x" * 80
    Printer().table([Column("name", wide=True), Column("state"), Column("long enough")], [(name, "ok", "y" * 15)])
    printed = stream.getvalue()
    assert "".join(printed.split()).count("x") == 80
    assert "y" * 15 in printed
    assert len(printed.splitlines()) <= lines


@pytest.mark.parametrize(("terminal", "width"), [(True, "80"), (True, "200"), (False, "80")])
def test_a_narrow_terminal_cuts_the_middle_of_locations(monkeypatch: pytest.MonkeyPatch, *, terminal: bool, width: str) -> None:
    stream = print_to(monkeypatch, width, Terminal() if terminal else io.StringIO())
    location = "s3://lake/" + "deep/" * 20 + "orders.lance"
    Printer().table([Column("name"), Column("location", cut=True), Column("note", wide=True)], [("orders", location, "x" * 12)])
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    is_cut = terminal and width == "80"
    assert (location in lines[1]) != is_cut
    assert ("…" in lines[1]) == is_cut
    assert "s3://lake/" in lines[1]
    assert "orders.lance" in lines[1]
    assert not is_cut or len(lines[1]) <= 80


def test_a_table_that_is_too_wide_has_the_other_columns_below_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = print_to(monkeypatch, "50", Terminal())
    columns = [Column("severity"), Column("table", wide=True), Column("since"), Column("what", wide=True)]
    Printer().table(columns, [("high", "aws$sales$orders", "2026-11-25 09:30:17", "it is at one place " * 3)])
    assert re.sub("\x1b\\[[0-9;]*m", "", stream.getvalue()).splitlines() == [
        "severity  table",
        "high      aws$sales$orders",
        "    since  2026-11-25 09:30:17",
        "    what   it is at one place it is at one place",
        "           it is at one place",
    ]


def test_folded_columns_keep_their_words_whole_and_share_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = print_to(monkeypatch, "54", Terminal())
    rows = [("a", "aws$123456789012$sales$orders, lake_hive$sales$orders", "declared twice in a source")]
    Printer().table([Column("at"), Column("declared as", wide=True), Column("note", wide=True)], rows)
    assert [line.rstrip() for line in re.sub("\x1b\\[[0-9;]*m", "", stream.getvalue()).splitlines()] == [
        "at  declared as                      note",
        "a   aws$123456789012$sales$orders,   declared twice in",
        "    lake_hive$sales$orders           a source",
    ]


def test_the_last_column_alone_is_wrapped_beside_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = print_to(monkeypatch, "50", Terminal())
    name = "org.example." + "x" * 28
    rows = [("python", "ok", "3.11.2, with everything that is needed here"), ("hive", "warn", f"no log; set {name}")]
    Printer().table([Column("check"), Column("state"), Column("found", wide=True)], rows)
    assert re.sub("\x1b\\[[0-9;]*m", "", stream.getvalue()).splitlines() == [
        "check   state  found",
        "python  ok     3.11.2, with everything that is",
        "               needed here",
        "hive    warn   no log; set",
        f"    {name}",
    ]


def test_a_long_line_is_wrapped_between_words_and_its_names_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = print_to(monkeypatch, "40", Terminal())
    location = "file:/lake/" + "x" * 40
    Printer().line(f"  + declare  aws$sales$orders  {location}  (new at the origin)")
    assert stream.getvalue().splitlines() == [
        "  + declare  aws$sales$orders", f"      {location}", "      (new at the origin)",
    ]  # fmt: skip


def test_long_output_on_a_terminal_goes_through_the_pager(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LINES", "5")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("PAGER", f"cat > {tmp_path}/paged")
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(sys, "stdout", Terminal())
    for number, pager in ((3, True), (9, False), (9, True)):
        out = Printer(paged=pager)
        for line in range(number):
            out.line(f"line {line}")
        out.close()
        assert (tmp_path / "paged").exists() == (number == 9 and pager)
    assert (tmp_path / "paged").read_text().splitlines() == [f"line {line}" for line in range(9)]


def test_a_folded_column_has_room_for_its_longest_word_with_wide_characters() -> None:
    columns, rows = [Column("doc", wide=True)], [["表" * 10]]
    assert fits(columns, rows, 20)
    assert not fits(columns, rows, 19)


def test_a_cut_text_keeps_its_width_with_wide_characters() -> None:
    assert cell_len(cut_middle("s3://湖/" + "表" * 40, 24)) <= 24
    assert cut_middle("s3://lake/a", 24) == "s3://lake/a"


def test_a_line_on_a_terminal_has_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stdout", stream)
    Printer().line("[bold]:smile: 'x' 12[/bold]", style=None)
    assert stream.getvalue() == "[bold]:smile: 'x' 12[/bold]\n"


def test_lengths_and_counts() -> None:
    assert [format_duration(n) for n in (0.02, 0.42, 12.4, 90, 7200, 200_000)] == [
        "20 ms",
        "0.4 s",
        "12 s",
        "2 min",
        "2 h",
        "2 days",
    ]
    assert format_age(time.time() - 3 * 60) == "3 min ago"
    assert format_age(time.time() + 60) == "now"
    assert (format_count(1, "table"), format_count(1204, "table")) == ("1 table", "1,204 tables")


def test_progress_says_what_ended_and_counts_what_was_made(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressDisplay(quiet=False) as progress:
        progress(ProgressEvent("crawl", "[b]lake"))
        progress(ProgressEvent("crawl", "[b]lake", "ok", "2 tables", 1.24))
        progress(ProgressEvent("change", "declare_table copy$a", "done"))
        progress(ProgressEvent("change", "declare_table copy$b", "skipped", "the target has changed"))
    assert capsys.readouterr().err == (
        "crawl    [b]lake  ok  2 tables  (1.2 s)\n         declare_table copy$b  skipped  the target has changed\n"
    )


def test_what_takes_long_gives_a_sign(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressDisplay(quiet=False) as progress:
        progress(ProgressEvent("crawl", "lake"))
        message, end = "", time.monotonic() + 60
        while not message.endswith("\n") and time.monotonic() < end:
            time.sleep(0.1)
            message += capsys.readouterr().err
        progress(ProgressEvent("crawl", "lake", "ok"))
    assert message.startswith("crawl    lake  ")
    assert message.endswith("...\n")


def test_lines_and_frames_of_several_threads_do_not_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rich draws a frame under its lock and asks the display for it, while the display prints lines through rich."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    ended = threading.Event()

    def print_lines(number: int) -> None:
        for line in range(200):
            progress(ProgressEvent("change", f"declare_table copy$t{number}_{line}", "skipped", "the target has changed"))

    def draw_frames() -> None:
        while not ended.is_set():
            live.refresh()

    progress = ProgressDisplay(quiet=False).__enter__()
    live = progress._live
    assert live is not None
    progress(ProgressEvent("apply", "nightly"))
    threading.Thread(target=draw_frames, daemon=True).start()
    printing = [threading.Thread(target=print_lines, args=(number,), daemon=True) for number in range(2)]
    for thread in printing:
        thread.start()
    for thread in printing:
        thread.join(60)
    # If they wait for each other, ending the display would wait, too.
    assert [thread.name for thread in printing if thread.is_alive()] == []
    ended.set()
    progress.__exit__(None, None, None)
    assert all(f"declare_table copy$t{number}_{line}  " in stream.getvalue() for number in range(2) for line in range(200))


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressDisplay(quiet=True) as progress:
        progress(ProgressEvent("crawl", "lake"))
        progress(ProgressEvent("crawl", "lake", "failed", "broken"))
    assert capsys.readouterr().err == ""


def test_a_stopped_run_begins_no_further_step(capsys: pytest.CaptureFixture[str]) -> None:
    stop = threading.Event()
    with ProgressDisplay(quiet=False, stop=stop) as progress:
        progress(ProgressEvent("crawl", "lake"))
        stop.set()
        progress(ProgressEvent("change", "declare_table copy$a", "done"))
        progress(ProgressEvent("crawl", "lake", "failed", "cancelled"))
        with pytest.raises(KeyboardInterrupt):
            progress(ProgressEvent("plan", "nightly"))
    assert capsys.readouterr().err == "crawl    lake  stopped\n"


def test_a_command_in_a_sentence_is_never_broken() -> None:
    text = "nothing was changed; accept the new identity with federator sources confirm target --yes, and crawl"
    assert wrap_line(text, 60) == (
        "nothing was changed; accept the new identity with\n    federator sources confirm target --yes, and crawl"
    )
    # The terminal breaks what is longer than a line, and copies it in one piece.
    assert wrap_line(text, 30).split("\n")[2] == "    federator sources confirm target --yes,"
