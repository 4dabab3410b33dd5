"""``notifications``: lists notifications, retries dead ones, and tests a channel."""

from __future__ import annotations

import json

from federator.model.notices import Notice, NoticeEvent
from federator.notify import deliver_due
from federator.settings import load_settings
from federator.store import notices
from tests.unit.cli.conftest import Shell
from tests.unit.notify.receiver import receiving


def channel(shell: Shell, url: str) -> None:
    file = shell.folder / "federator.toml"
    file.write_text(file.read_text() + f'[notify.ops]\nkind = "webhook"\nurl = "{url}"\n')


def test_from_a_dead_one_to_a_sent_one(shell: Shell) -> None:
    with receiving() as receiver:
        channel(shell, receiver.url)
        index = shell.index()
        with index.write() as connection:
            notices.add_notices(connection, [Notice(NoticeEvent.SOURCE_FAILED, "lake", "away", source="lake")])
        receiver.answers = [(400, {})]
        deliver_due(index, load_settings(shell.folder / "federator.toml"), at_once=True)
        index.close()
        (dead,) = shell.json("notifications", "list", "--state", "dead")["notifications"]
        assert (dead["channel"], dead["events"], dead["error"]) == ("ops", 1, "the server returned 400")
        assert dead["first"][0]["subject"] == "lake"
        shown = shell.run("notifications", "list")
        assert "1 source failed" in shown.stdout
        receiver.answers = [(503, {})]
        again = shell.run("notifications", "retry", dead["id"][:20])
        assert again.exit_code == 1
        assert "queued, the server returned 503" in again.stdout
        refused = shell.run("notifications", "retry", dead["id"])
        assert refused.exit_code == 1
        assert "is queued, not dead" in refused.stderr
        assert {got.headers["Federator-Notification"] for got in receiver.received} == {dead["id"]}
    assert shell.json("notifications", "list", "--state", "sent")["notifications"] == []


def test_a_channel_is_tried(shell: Shell) -> None:
    shell.index().close()
    with receiving() as receiver:
        channel(shell, receiver.url)
        (row,) = shell.json("notifications", "test", "ops")["notifications"]
        assert row["state"] == "sent"
        assert json.loads(receiver.bodies[0])["counts"] == {"test": 1}
        receiver.answers = [(404, {})]
        failed = shell.run("notifications", "test", "ops")
        assert failed.exit_code == 1
        assert "ops: dead, the server returned 404" in failed.stdout
    unknown = shell.run("notifications", "test", "nobody")
    assert unknown.exit_code == 64
    assert "channels: ops" in unknown.stderr


def test_retry_wants_to_know_which(shell: Shell) -> None:
    shell.index().close()
    assert "specify either ids or --dead" in shell.run("notifications", "retry").stderr
