"""Kinds of audit events. docs/how-to/audit.md says when each is recorded."""

from __future__ import annotations

from enum import StrEnum


class AuditKind(StrEnum):
    """What an audit event describes."""

    RUN_STARTED = "run_started"
    RUN_FINISHED = "run_finished"
    CONFIG_CHANGED = "config_changed"
    PLAN = "plan"
    PLAN_APPROVED = "plan_approved"
    PLAN_REJECTED = "plan_rejected"
    #: a change of a mirror
    WRITE = "write"
    #: a direct write of a principal
    OWN_WRITE = "own_write"
    TABLE_VERIFIED = "table_verified"
    CREDENTIALS_VENDED = "credentials_vended"
    SOURCE_CONFIRMED = "source_confirmed"
    INSTANCE_CONFIRMED = "instance_confirmed"
    INSTANCE_ROTATED = "instance_rotated"
    ATTENTION_SNOOZED = "attention_snoozed"
    SNOOZE_ENDED = "snooze_ended"
    TOKEN_CREATED = "token_created"  # noqa: S105 - a kind of event
    TOKEN_REVOKED = "token_revoked"  # noqa: S105 - a kind of event
    SIGNED_IN = "signed_in"
    SIGNED_OUT = "signed_out"
    SIGN_IN_REFUSED = "sign_in_refused"
    SESSIONS_REVOKED = "sessions_revoked"
    LEDGER_REBUILT = "ledger_rebuilt"
    HISTORY_PRUNED = "history_pruned"
    REPORT_MADE = "report_made"
    #: replaces the events that ``federator audit rotate`` removed
    CHECKPOINT = "audit_checkpoint"
