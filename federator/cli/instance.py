"""``instance``: the deployment that the index belongs to, and the handling of clones."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Any

import typer

from federator.cli.context import Cli, command, create_group

if TYPE_CHECKING:
    from federator.settings import InstanceSettings
    from federator.store import Index
    from federator.store.deployment import Deployment

group = create_group("The deployment that the index belongs to.")


def show(cli: Cli) -> None:
    """Show the instance id, the fingerprint of the index, and whether mirrors may write."""
    from federator.store import deployment

    with cli.index() as index:
        _print_deployment(cli, index, deployment.read_deployment(index, cli.settings.instance))


def confirm(cli: Cli) -> None:
    """Confirm that the index was moved here, or that its [instance] id was changed. Stop all processes that use the old copy first."""
    from federator import audit
    from federator.store import deployment

    with cli.index() as index:
        confirmed = deployment.confirm_site(index, cli.settings.instance, actor=getpass.getuser())
        audit.seal_pending(index)
        _print_deployment(cli, index, confirmed)


def rotate(cli: Cli) -> None:
    """Make this index a deployment of its own: it gets a new fingerprint, and needs a new instance id."""
    from federator import audit
    from federator.store import deployment

    with cli.index() as index:
        rotated = deployment.rotate_fingerprint(index, cli.settings.instance, actor=getpass.getuser())
        audit.seal_pending(index)
        _print_deployment(cli, index, rotated)
    if rotated.has_released(cli.settings.instance):
        cli.print_note(
            f"hint: choose a new [instance] id in {cli.settings.path}: objects marked {rotated.released_instance!r} belong to the "
            "deployment of the original index. No mirror writes until then"
        )


def _print_deployment(cli: Cli, index: Index, deployment: Deployment) -> None:
    instance = cli.settings.instance
    data: dict[str, Any] = {
        "instance": instance.id, "fingerprint": deployment.fingerprint, "index": index.address, "place": deployment.current_site,
        "confirmed": deployment.confirmed_site, "clone": deployment.is_clone, "left": deployment.released_instance,
        "marked": deployment.instance,
        "writes": not (deployment.is_clone or deployment.has_released(instance) or deployment.is_renamed(instance)),
    }  # fmt: skip
    if cli.json:
        cli.out.document(data)
        return
    cli.out.pairs([
        ("instance", instance.id or "(none)"), ("fingerprint", deployment.fingerprint), ("index", index.address),
        ("state", _describe_state(deployment, instance)), ("current location", deployment.current_site),
        ("confirmed for", deployment.confirmed_site or "(the first run confirms it)"),
    ])  # fmt: skip


def _describe_state(deployment: Deployment, instance: InstanceSettings) -> str:
    if deployment.is_clone:
        return "a clone: mirrors do not write"
    if deployment.has_released(instance):
        return f"waiting for a new [instance] id: {deployment.released_instance} belongs to another deployment"
    if deployment.is_renamed(instance):
        return f"renamed: declarations are marked {deployment.instance}; mirrors do not write"
    return "confirmed" if deployment.confirmed_site else "not confirmed yet"


def register(app: typer.Typer) -> None:
    command(group, "show", paged=True)(show)
    command(group, "confirm")(confirm)
    command(group, "rotate")(rotate)
    app.add_typer(group, name="instance")
