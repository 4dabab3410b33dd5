"""``instance``: whether this index is the deployment that it says it is, or a clone of it."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Any

import typer

from federator.cli.context import Cli, command

if TYPE_CHECKING:
    from federator.index import Index
    from federator.index.deployment import Deployment

group = typer.Typer(help="The deployment that the index belongs to.", no_args_is_help=True, rich_markup_mode=None)


def show(cli: Cli) -> None:
    """Show the instance's id, the index's fingerprint, and whether mirrors may be written to from here."""
    from federator.index import deployment

    with cli.index() as index:
        _told(cli, index, deployment.read(index, cli.settings.instance))


def confirm(cli: Cli) -> None:
    """Confirm that the index was moved here, or that its [instance] id was changed. Stop all processes that use the old copy first."""
    from federator import audit
    from federator.index import deployment

    with cli.index() as index:
        found = deployment.confirm(index, cli.settings.instance, actor=getpass.getuser())
        audit.seal(index)
        _told(cli, index, found)


def rotate(cli: Cli) -> None:
    """Say that this index is another one now: it gets a fingerprint of its own, and needs an instance id of its own."""
    from federator import audit
    from federator.index import deployment

    with cli.index() as index:
        found = deployment.rotate(index, cli.settings.instance, actor=getpass.getuser())
        audit.seal(index)
        _told(cli, index, found)
    if found.given_up(cli.settings.instance):
        cli.note(
            f"hint: choose a new [instance] id in {cli.settings.path}: what is marked {found.left!r} belongs to the deployment "
            "that this index came from, and no mirror is written to until then"
        )


def _told(cli: Cli, index: Index, found: Deployment) -> None:
    instance = cli.settings.instance
    data: dict[str, Any] = {
        "instance": instance.id, "fingerprint": found.fingerprint, "index": index.address, "place": found.here,
        "confirmed": found.confirmed, "clone": found.cloned, "left": found.left,
        "marked": found.instance, "writes": not (found.cloned or found.given_up(instance) or found.renamed(instance)),
    }  # fmt: skip
    if cli.json:
        cli.out.document(data)
        return
    state = "a clone: mirrors are not written to" if found.cloned else "confirmed" if found.confirmed else "not confirmed yet"
    if not found.cloned and found.given_up(instance):
        state = f"waiting for a new [instance] id: {found.left} belongs to another deployment"
    elif not found.cloned and found.renamed(instance):
        state = f"renamed: declarations are marked {found.instance}; mirrors are not written to"
    cli.out.pairs([
        ("instance", instance.id or "(none)"), ("fingerprint", found.fingerprint), ("index", data["index"]), ("state", state),
        ("here", found.here), ("confirmed for", found.confirmed or "(the first run confirms it)"),
    ])  # fmt: skip


def register(app: typer.Typer) -> None:
    command(group, "show")(show)
    command(group, "confirm")(confirm)
    command(group, "rotate")(rotate)
    app.add_typer(group, name="instance")
