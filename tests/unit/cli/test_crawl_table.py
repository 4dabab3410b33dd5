"""The table of a crawl's sources, and its width."""

from __future__ import annotations

from pathlib import Path

import pytest

from federator.cli.context import Cli
from federator.cli.documents import Output
from federator.cli.result_output import print_sources
from federator.pipeline.publish import PublishResult
from federator.stages.result import RunResult

PLAIN = PublishResult(12, "ok", 1, 2, 3, 1200, 120_000)


def header_and_width(capsys: pytest.CaptureFixture[str], *sources: PublishResult) -> tuple[list[str], int]:
    result = RunResult("run", "crawl", sources={f"source_{number}": source for number, source in enumerate(sources)})
    print_sources(Cli(Path("federator.toml"), Output.TABLE, True), result)
    lines = capsys.readouterr().out.splitlines()
    return lines[0].split(), max(map(len, lines))


def test_a_usual_crawl_fits_into_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    header, width = header_and_width(capsys, PLAIN, PLAIN)
    assert header == ["source", "state", "tables", "namespaces", "new", "changed", "removed", "revision"]
    assert width <= 80


def test_one_source_brings_the_columns_that_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert header_and_width(capsys, PLAIN, PublishResult(12, "ok", carried=4))[0][-2:] == ["carried", "revision"]
    assert header_and_width(capsys, PLAIN, PublishResult(12, "partial", message="denied"))[0][-2:] == ["revision", "note"]
