"""The configuration of channels, and the one-line error for each mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from federator.connector import ConfigError
from federator.settings import parse_settings

HOOK = {"kind": "webhook", "url": "https://h.example.com/x"}
MAIL = {"kind": "smtp", "host": "smtp.example.com", "from": "a@example.com", "to": ["b@example.com"]}


@pytest.mark.parametrize(
    ("channel", "message"),
    [
        ({"kind": "pager"}, "kind: 'pager' is not allowed"),
        ({**HOOK, "events": ["fire"]}, "'fire' is not allowed: it must be one of *, run_failed"),
        ({**HOOK, "min_severity": "loud"}, "min_severity: 'loud' is not allowed"),
        ({**HOOK, "group_by": ["colour"]}, "'colour' is not allowed"),
        ({**HOOK, "nope": 1}, "nope: unknown key; allowed: kind, url"),
        ({"kind": "webhook"}, "url: not an allowed URL"),
        ({**HOOK, "url": "http://h.example.com/x"}, "url: not an allowed URL"),
        ({**HOOK, "url": "ftp://h.example.com/x"}, "url: not an allowed URL"),
        ({**HOOK, "url": "file:/not/there"}, "url: not a readable file"),
        ({**HOOK, "url": "https://ann:hunter2@h.example.com/x"}, "url: not an allowed URL"),
        ({**HOOK, "secret": "hunter2"}, "secret: a secret must not stand in the file"),
        ({**HOOK, "secret": "${NOT_SET}"}, "the environment variable NOT_SET is not set"),
        ({**HOOK, "secret": "file:/not/there"}, "secret: not a readable file"),
        ({**HOOK, "host": "x"}, 'host cannot be used with kind = "webhook"'),
        ({"kind": "slack", "url": "https://hooks.example.com/T0/hunter2"}, "url: a secret must not stand in the file"),
        ({**MAIL, "url": "https://x"}, 'url cannot be used with kind = "smtp"'),
        ({**MAIL, "to": []}, 'to: required with kind = "smtp"'),
        ({**MAIL, "to": ["nobody"]}, "'nobody' is not an e-mail address"),
        ({**MAIL, "tls": "none"}, 'tls: "none" is only allowed for a host on loopback'),
        ({**MAIL, "password": "hunter2"}, "password: a secret must not stand in the file"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(tmp_path: Path, channel: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_settings({"notify": {"ops": channel}}, tmp_path / "federator.toml")
    assert "notify.ops" in caught.value.message
    assert message in str(caught.value)
    assert "\n" not in caught.value.message
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"telemetry": {"endpoint": "http://collector.example.com:4318"}}, "[telemetry] endpoint: not an allowed URL"),
        ({"telemetry": {"endpoint": "https://[collector"}}, "[telemetry] endpoint: not an allowed URL"),
        ({"telemetry": {"endpoint": "https://c", "token": "hunter2"}}, "[telemetry] token: a secret must not stand"),
        ({"lineage": {"url": "http://marquez.example.com"}}, "[lineage] url: not an allowed URL"),
        ({"lineage": {"url": "https://m", "file": "x"}}, "[lineage] file and url are mutually exclusive"),
        ({"logs": {"format": "xml"}}, "[logs] format: 'xml' is not allowed"),
        ({"logs": {"fromat": "json"}}, "[logs] fromat: unknown key; allowed: format, level"),
    ],
)
def test_of_the_other_sections_too(tmp_path: Path, section: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_settings(section, tmp_path / "federator.toml")
    assert message in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_defaults_are_those_of_the_docs(tmp_path: Path) -> None:
    made = parse_settings({"notify": {"ops": HOOK, "mail": MAIL}}, tmp_path / "federator.toml").notify["ops"]
    text = (Path(__file__).parents[3] / "docs" / "how-to" / "notifications.md").read_text()
    for key in ("min_severity", "attempts"):
        assert f"| `{key}` | `{getattr(made, key)}` |".replace("`10`", "10") in text
    assert (made.events, made.sources, made.mirrors, made.group_by, made.group_wait) == (
        ("*",),
        ("*",),
        ("*",),
        ("event",),
        30.0,
    )


def test_every_event_is_in_the_docs() -> None:
    from federator.model.notices import NoticeEvent, Severity

    text = (Path(__file__).parents[3] / "docs" / "how-to" / "notifications.md").read_text()
    for event in NoticeEvent:
        line = next(line for line in text.splitlines() if line.startswith(f"| `{event.value}` |"))
        assert event is NoticeEvent.DRIFT_FOUND or f"| {event.severity.value} |" in line
    assert all(f"`{severity.value}`" in text for severity in Severity)
