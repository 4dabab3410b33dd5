"""A light catalog: dictionaries behind the port, with faults that strike once and a witness of every write.

Records are kept as they are handed out, so that their digests are computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from federator.connector import (
    Catalog,
    CatalogChanges,
    ConcurrentModification,
    Confirm,
    Internal,
    InvalidInput,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    PermissionDenied,
    ServiceUnavailable,
    Shard,
    TableAlreadyExists,
    TableNotFound,
    Throttled,
    Unsupported,
    unconditional,
)
from federator.model import (
    COMPLETE,
    ROOT,
    Coverage,
    Identity,
    Kind,
    NamespaceRecord,
    Path,
    Record,
    TableRecord,
    failed_evidence,
    fold_digest,
    path_key,
)
from tests.prove.armed import OBSERVATION_ERRORS, SLOW, Armed, Crash
from tests.prove.truth import CatalogTruth


class Witness(Protocol):
    """Sees every write of the product, with the truth before and after it, and every fault that strikes."""

    def wrote(
        self, catalog: LightCatalog, call: str, key: str, before: TableRecord | None, after: TableRecord | None
    ) -> None: ...

    def struck(self, fault: str, source: str) -> None: ...

    def later(self, effect: Callable[[], None]) -> Callable[[], None]: ...

    def denied(self, catalog: LightCatalog, key: str) -> None: ...

    def observed(self, catalog: LightCatalog, key: str, truth: str, started_at: float) -> None: ...

    def now(self) -> float: ...

    def wait(self, seconds: float) -> None: ...


@dataclass
class LightCatalog(CatalogTruth, Catalog):
    """A catalog that shows its truth to the product, unless an armed fault strikes."""

    witness: Witness = field(kw_only=True)
    armed: Armed = field(default_factory=Armed)
    #: whether the catalog tells which one it is
    has_identity: bool = False
    #: number, tables, namespaces, foreign objects and identities of the catalog that another one replaces
    replaced: tuple[Any, ...] | None = None
    _removed: str = ""

    # The port.

    def list_namespaces(self, parent: Path) -> list[str]:
        self._require_namespace(parent)
        return [r.path[-1] for r in self.namespaces.values() if r.path[:-1] == parent]

    def describe_namespace(self, path: Path) -> NamespaceRecord:
        self._meet_observation_faults()
        if path == ROOT:
            return NamespaceRecord(self.source, ROOT)
        self._require_namespace(path)
        return self.namespaces[path_key(path)]

    def list_tables(self, namespace: Path) -> list[str]:
        self._require_namespace(namespace)
        if path_key(namespace) in self.hidden:
            return []
        return [r.path[-1] for r in self.tables.values() if r.path[:-1] == namespace and r.kind is Kind.TABLE]

    def describe_table(self, path: Path) -> TableRecord:
        started_at, key = self.witness.now(), path_key(path)
        self._meet_observation_faults()
        self.witness.observed(self, key, self.truth(path), started_at)
        if path_key(path[:-1]) in self.hidden:
            # The worst that such a catalog does: what may not be seen is said not to exist.
            self.witness.denied(self, key)
            raise TableNotFound(f"{key} is not there")
        self._require_namespace(path[:-1])
        if key in self.foreign:
            raise InvalidInput(f"{key} is {self.foreign[key]}")
        record = self.tables.get(key)
        self._raced()
        if record is None:
            raise TableNotFound(f"{key} is not there")
        if record.kind is Kind.MANAGED_TABLE:
            raise InvalidInput(f"{key} is managed by the catalog")
        return record

    def create_namespace(self, record: NamespaceRecord) -> NamespaceRecord:
        key = record.key
        fault = self._before_write()
        if len(record.path) not in self.capabilities.creates_namespaces_at:
            raise Unsupported(f"{key} cannot be created here")
        self._require_namespace(record.path[:-1])
        if key in self.namespaces:
            raise NamespaceAlreadyExists(f"{key} is there")
        uid = self._uid()
        changed = replace(record, source=self.source, native_id=self._id(uid))

        def effect() -> None:
            if key not in self.namespaces:
                self.uids[f"/{key}"] = uid
                self.witness.wrote(self, "create_namespace", key, None, None)
                self._touch().namespaces[key] = changed

        self._carry_out(fault, effect)
        return changed

    def drop_namespace(self, path: Path) -> None:
        key = path_key(path)
        fault = self._before_write()
        self._require_namespace(path)
        # Where the catalog drops whatever is inside, nothing but a look is before it, and that does not see what is hidden.
        cascades = self.capabilities.drop_cascades and key in self.hidden
        if not cascades and self._has_contents(path):
            raise NamespaceNotEmpty(f"{key} is not empty")

        def effect() -> None:
            if key in self.namespaces and (cascades or not self._has_contents(path)):
                self.witness.wrote(self, "drop_namespace", key, None, None)
                self.take_away(path)

        self._carry_out(fault, effect)

    def declare_table(self, record: TableRecord) -> TableRecord:
        fault = self._before_write(declares=True)
        if record.key == self._removed and self.armed.halfway is not None:
            self._fail_halfway(record)
        if record == self.armed.refused:
            raise PermissionDenied("denied")
        if not self.capabilities.writes_tables:
            raise Unsupported("this catalog takes no declarations")
        key = record.key
        self._require_namespace(record.path[:-1])
        if fault == "name_raced":
            self._create_first(record)
        if key in self.tables or key in self.foreign:
            raise TableAlreadyExists(f"{key} is there")
        uid = self._uid()
        changed = replace(self._storable(record), source=self.source, native_id=self._id(uid), version=str(uid))

        def effect() -> None:
            if key not in self.tables and key not in self.foreign and self._exists(record.path[:-1]):
                self.uids[key] = uid
                self.witness.wrote(self, "declare_table", key, None, changed)
                self._touch().tables[key] = changed

        self._carry_out(fault, effect)
        return changed

    def update_table(self, before: TableRecord, after: TableRecord, *, confirm: Confirm = unconditional) -> TableRecord:
        fault = self._before_write()
        if not self.capabilities.can_alter:
            raise Unsupported("this catalog cannot alter tables")
        now = self._expected(before)
        confirm()
        changed = replace(self._storable(after), source=self.source, native_id=now.native_id, version=str(self._uid()))

        def effect() -> None:
            if self.tables.get(now.key) is now:
                self.witness.wrote(self, "update_table", now.key, now, changed)
                self._touch().tables[now.key] = changed

        self._carry_out(fault, effect)
        return changed

    def deregister_table(self, expected: TableRecord, *, confirm: Confirm = unconditional) -> None:
        fault = self._before_write()
        now = self._expected(expected)
        confirm()

        def effect() -> None:
            if self.tables.get(now.key) is now:
                self.witness.wrote(self, "deregister_table", now.key, now, None)
                self._touch().tables.pop(now.key)
                self._removed = now.key

        self._carry_out(fault, effect)

    def rename_table(self, before: TableRecord, new_path: Path) -> TableRecord:
        raise Unsupported("mirrors never rename")

    def read_native(self, path: Path) -> dict[str, Any]:
        record = self.describe_table(path)
        return {"path": record.key, "location": record.location, "properties": dict(record.properties)}

    def describe_recreate_loss(self, native: Mapping[str, Any]) -> str | None:
        # Some tables have grants that nobody could restore.
        return "its grants" if native["properties"].get("q") else None

    def identity(self, namespaces: Collection[Path] | None = ()) -> Identity | None:
        return Identity.of(f"{self.source}, number {self.number}") if self.has_identity else None

    def changes_since(self, cursor: str) -> CatalogChanges:
        back = cursor != str(self.past)
        return CatalogChanges(str(self.past), full_crawl="its past is another one" if back else None, went_back=back)

    # The crawl.

    def plan_shards(self) -> Sequence[Shard]:
        if self.armed.listing is not None and self.armed.listing[0] == "unreachable":
            self.armed.listing = None
            self.witness.struck("unreachable", self.source)
            raise ServiceUnavailable(f"{self.source} does not answer")
        return [Shard((ROOT,)), *(Shard((record.path,)) for record in sorted(self.namespaces.values(), key=lambda r: r.path))]

    def read_shard(self, shard: Shard) -> Iterator[Record | Coverage]:
        for namespace in shard.namespaces:
            yield from self._read(namespace)

    def _read(self, namespace: Path) -> Iterator[Record | Coverage]:
        kind = self._listing_fault(namespace)
        if kind == "namespace_vanished":
            self.take_away(namespace)
        if not self._exists(namespace):
            evidence = failed_evidence(1, "it does not exist")
            yield Coverage(self.source, namespace, evidence, evidence, found=False)
            return
        if kind == "listing_failed":
            evidence = failed_evidence(17, "the catalog did not answer")
            yield Coverage(self.source, namespace, evidence, evidence)
            return
        if kind == "answer_without_fields":
            evidence = failed_evidence(Internal.code, "the answer lacks what it always has")
            yield Coverage(self.source, namespace, evidence, evidence)
            return
        if kind == "namespace_denied":
            evidence = failed_evidence(15, "denied")
            yield Coverage(self.source, namespace, evidence, evidence)
            return
        handed: list[Record] = [] if path_key(namespace) in self.hidden else list(self.below(namespace))
        presence = COMPLETE
        if kind == "listing_short":
            handed, presence = handed[: len(handed) // 2], failed_evidence(17, "the listing broke off")
        detail = presence
        if kind == "table_undescribed":
            handed = [
                TableRecord(self.source, r.path, kind=Kind.UNDESCRIBED, problem="the catalog did not answer")
                if isinstance(r, TableRecord) else r
                for r in handed
            ]  # fmt: skip
            detail = failed_evidence(17, "some could not be described")
        fold = fold_digest(r.digest for r in handed)
        # Rows that are lost on their way were counted before.
        yield from handed[1:] if kind == "rows_lost" else handed
        yield Coverage(self.source, namespace, presence, detail, len(handed), fold)

    def _listing_fault(self, namespace: Path) -> str:
        if self.armed.listing is None:
            return ""
        kind, number = self.armed.listing
        namespaces: list[Path] = [r.path for r in sorted(self.namespaces.values(), key=lambda r: r.path)]
        # A vanished root is no catalog; every other fault may strike it too, where tables lie in it or by chance.
        if not namespaces or (number % 7 == 0 and kind != "namespace_vanished") or self.capabilities.max_depth == 0:
            namespaces = [ROOT]
        if namespaces[number % len(namespaces)] != namespace or (kind == "namespace_vanished" and namespace == ROOT):
            return ""
        handed = self.below(namespace)
        if (kind in ("rows_lost", "listing_short") and not handed) or (
            kind == "table_undescribed" and not any(isinstance(r, TableRecord) for r in handed)
        ):
            return ""
        self.armed.listing = None
        self.witness.struck(kind, self.source)
        return kind

    # Inside.

    def _meet_observation_faults(self) -> None:
        self._out()
        if self.armed.slow:
            self.armed.slow -= 1
            self.witness.struck("look_slow", self.source)
            self.witness.wait(SLOW)
        if self.armed.observation is not None:
            fault, self.armed.observation = self.armed.observation, None
            self.witness.struck(fault, self.source)
            raise OBSERVATION_ERRORS[fault]()

    def _out(self) -> None:
        if self.armed.outage:
            self.witness.struck("outage", self.source)
            raise ServiceUnavailable(f"{self.source} does not answer")

    def _raced(self) -> None:
        if self.armed.race is not None:
            self.armed.race_after -= 1
            if self.armed.race_after < 0:
                race, self.armed.race = self.armed.race, None
                race()

    def _before_write(self, *, declares: bool = False) -> str:
        self._raced()
        self._out()
        if self.armed.write == "name_raced" and not declares:
            return ""
        fault, self.armed.write = self.armed.write or "", None
        if fault:
            self.witness.struck(fault, self.source)
        if fault == "answer_lost_before":
            raise ServiceUnavailable("the connection broke")
        if fault == "throttled":
            raise Throttled("too many requests")
        if fault == "write_denied":
            raise PermissionDenied("denied")
        return fault

    def _create_first(self, record: TableRecord) -> None:
        """Another client creates the same name: a table there or elsewhere, or an entry that is only half made."""
        if record.key in self.tables or record.key in self.foreign:
            return
        if self._next % 3 == 0:
            self.squat(record.key)
        else:
            self.put(TableRecord(self.source, record.path, record.location if self._next % 3 == 1 else "s3://lake/9"))

    def _fail_halfway(self, record: TableRecord) -> None:
        fault, self.armed.halfway = self.armed.halfway or "", None
        self.witness.struck(fault, self.source)
        if fault == "crash_halfway":
            raise Crash
        if fault == "halfway_denied":
            self.armed.refused = record
            raise PermissionDenied("denied")
        raise ServiceUnavailable("no answer")

    def _carry_out(self, fault: str, effect: Callable[[], None]) -> None:
        if fault == "answer_late":
            self.late.append(self.witness.later(effect))
            raise ServiceUnavailable("no answer in time")
        effect()
        if fault == "crash_after_call":
            raise Crash
        if fault == "answer_malformed":
            raise Internal("the answer lacks what it always has")
        if fault == "answer_lost_after":
            raise ServiceUnavailable("the answer was lost")
        if fault == "answer_and_look_lost":
            self.armed.observation = "look_failed"
            raise ServiceUnavailable("the answer was lost")

    def _expected(self, expected: TableRecord) -> TableRecord:
        self.witness.observed(self, expected.key, self.truth(expected.path), self.witness.now())
        self._require_namespace(expected.path[:-1])
        now = self.tables.get(expected.key)
        if now is None:
            raise TableNotFound(f"{expected.key} is not there")
        if now.kind is not Kind.TABLE:
            raise InvalidInput(f"{expected.key} is managed by the catalog")
        if now is not expected and now.digest != expected.digest:
            raise ConcurrentModification(f"{expected.key} is not as it was")
        return now

    def _storable(self, record: TableRecord) -> TableRecord:
        caps = self.capabilities
        properties = record.properties if caps.keeps_properties else {}
        return replace(record, properties=dict(properties), doc=record.doc if caps.keeps_comment else None)

    def _require_namespace(self, namespace: Path) -> None:
        if not self._exists(namespace):
            raise NamespaceNotFound(f"{path_key(namespace)} is not there")
