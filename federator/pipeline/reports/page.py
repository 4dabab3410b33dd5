"""The page: one HTML file that needs nothing else, with charts as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import federator
from federator.connector import ConfigError
from federator.pipeline.reports.sections import Report, Section, utc

_TITLES = {
    "inventory": "Inventory", "drift": "Drift", "mirrors": "Mirrors", "freshness": "Freshness", "growth": "Growth",
    "access": "Access",
}  # fmt: skip
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
#: the chart's plot within its view box
LEFT, TOP, WIDTH, HEIGHT = 56, 12, 640, 190


def write_page(report: Report, path: Path) -> None:
    """Writes the page. Raises ConfigError without jinja2."""
    try:
        from jinja2 import Environment, StrictUndefined
    except ModuleNotFoundError:
        raise ConfigError("a report as HTML needs jinja2", hint="pip install 'lance-federator[reports]'") from None
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = files("federator.pipeline.reports").joinpath("page.html.j2").read_text(encoding="utf-8")
    environment.filters |= {"shown": shown, "head": head}
    text = environment.from_string(template).render(
        title=_TITLES[report.kind], kind=report.kind, made_at=utc(report.at), version=federator.__version__, report=report,
        sections=[_drawn(section) for section in report.sections],
    )  # fmt: skip
    path.write_text(text, encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Drawn:
    """A Section with what its chart needs."""

    section: Section
    numbers: Sequence[bool]
    largest: float = 0.0
    lines: Lines | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One series: its points as an SVG polyline, and the value that it ends with."""

    name: str
    points: str
    last: tuple[float, float]
    value: float


@dataclass(frozen=True, slots=True)
class Lines:
    """A chart of series over days: ticks are positions with their labels."""

    lines: Sequence[Line]
    ticks_x: Sequence[tuple[float, str]]
    ticks_y: Sequence[tuple[float, str]]


def shown(value: Any, column: str) -> str:
    """A value for people: thousands apart, sizes in binary units, times to the minute."""
    if value is None:
        return ""
    if column.endswith("_at"):
        return utc(value)[:16].replace("T", " ")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if column == "bytes":
        return _size(float(value))
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def head(column: str) -> str:
    """A column's heading."""
    return column.removesuffix("_at").replace("_", " ")


def _drawn(section: Section) -> Drawn:
    number = [_is_number(name, [row[place] for row in section.rows]) for place, name in enumerate(section.columns)]
    if section.shape == "bars":
        return Drawn(section, number, max((float(row[1] or 0) for row in section.rows), default=0.0))
    if section.shape == "lines":
        return Drawn(section, number, lines=_lines(section))
    return Drawn(section, number)


def _is_number(column: str, values: Sequence[Any]) -> bool:
    known = [value for value in values if value is not None]
    figures = all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)
    return figures and not column.endswith("_at") and (bool(known) or column in ("bytes", "rows"))


def _lines(section: Section) -> Lines | None:
    days = sorted({str(row[0]) for row in section.rows})
    if not days:
        return None
    series: dict[str, dict[str, float]] = {}
    for day, name, value in section.rows:
        series.setdefault(str(name), {})[str(day)] = float(value or 0)
    top = _ceiling(max(value for points in series.values() for value in points.values()))
    across = {day: LEFT + (WIDTH * place / (len(days) - 1) if len(days) > 1 else WIDTH / 2) for place, day in enumerate(days)}

    def height(value: float) -> float:
        return round(TOP + HEIGHT * (1 - value / top), 1)

    lines = []
    for name, points in sorted(series.items(), key=lambda item: -list(item[1].values())[-1]):
        placed = [(round(across[day], 1), height(points[day])) for day in days if day in points]
        last = points[max(points)]
        lines.append(Line(name, " ".join(f"{x},{y}" for x, y in placed), placed[-1], last))
    shown_days = dict.fromkeys(days[place * (len(days) - 1) // 4] for place in range(5))
    return Lines(
        lines,
        [(round(across[day], 1), day) for day in shown_days],
        [(height(top * part / 4), f"{top * part / 4:,.10g}") for part in range(5)],
    )


def _ceiling(value: float) -> float:
    """The least of some round numbers that is not below a value; a quarter of it is whole."""
    step = 1
    while True:
        for factor in (1, 2, 3, 5, 6, 8):
            if 4 * step * factor >= value:
                return 4.0 * step * factor
        step *= 10


def _size(value: float) -> str:
    for unit in _UNITS:
        if value < 1024 or unit == _UNITS[-1]:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError("the last unit takes every value")
