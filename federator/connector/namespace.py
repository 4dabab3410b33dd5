"""The namespace face: the official Lance interface on top of any ``Catalog``.

The only module of the core that imports ``lance_namespace``; import it where it is needed, or through ``lazy_namespace``. What
the specs leave open is decided here once for every catalog: names are listed as the children's own and sorted, OVERWRITE is a
RESTRICT drop and a create, CASCADE removes declarations only, and no operation deletes data.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol, Self, TypeVar, runtime_checkable

import lance_namespace as lance
from lance_namespace_urllib3_client.models.json_arrow_schema import JsonArrowSchema
from pydantic import BaseModel, ValidationError

from federator.connector.answers import (
    CASCADES,
    CONFIRM_HEADER,
    choice,
    namespace_properties,
    namespace_record,
    storage_options,
    table_properties,
    table_uri,
)
from federator.connector.cascade import drop_with_contents
from federator.connector.edge import of_connector
from federator.connector.errors import (
    CatalogError,
    ConfigError,
    FederatorError,
    Internal,
    InvalidInput,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    TableAlreadyExists,
    Unsupported,
)
from federator.connector.options import Settings
from federator.connector.paging import page_of
from federator.connector.pool import CatalogPool
from federator.connector.port import Catalog, Connector
from federator.connector.requests import Identifiers
from federator.connector.storage_use import is_unused
from federator.model import ROOT, Kind, Path, TableRecord, is_location, path_key

M = TypeVar("M", bound=BaseModel)

# Keyed, so that an id seen in a log cannot be used to guess a secret.
_ID_KEY = secrets.token_bytes(16)


@runtime_checkable
class SeesStorage(Protocol):
    """A catalog that can tell cheaply whether a declared table has been written: a directory."""

    def only_declared(self, record: TableRecord) -> bool: ...


@runtime_checkable
class KnowsSchema(Protocol):
    """A catalog that keeps the columns of its tables, and whose spec has DescribeTable show them: Unity."""

    def json_schema(self, record: TableRecord) -> Mapping[str, Any] | None:
        """The columns as a ``JsonArrowSchema``; None where it has none, or one whose type Arrow has no like of."""


class CatalogNamespace(lance.LanceNamespace):
    """A Lance namespace of one catalog. Thread-safe and picklable; connects with its first operation.

    Every operation takes the official request model, or any mapping with its fields, as lancedb sends. Errors are the official
    classes of ``lance_namespace.errors``.
    """

    connector: ClassVar[Connector[Any]]

    def __init__(self, **properties: Any) -> None:
        """``properties``: the connector's configuration, keys bare or prefixed with its impl. Raises InvalidInputError."""
        given = {key: str(value) for key, value in properties.items()}
        try:
            settings = self.connector.configure(given)
        except ConfigError as error:
            raise lance.InvalidInputError(str(error)) from error
        self._properties: dict[str, str] | None = given
        self._bind(self.connector.impl, settings)

    @classmethod
    def of(cls, source: str, settings: Settings) -> Self:
        """The face of a configured source, which its errors and records then name. Not picklable."""
        made = cls.__new__(cls)
        made._properties = None
        made._bind(source, settings)
        return made

    def _bind(self, source: str, settings: Settings) -> None:
        self._source = source
        self._settings = settings
        self._capabilities = self.connector.capabilities_of(settings)
        self._ids = Identifiers(source, self._capabilities)
        self._pool = CatalogPool(self._open)

    def _open(self) -> Catalog:
        try:
            return self.connector.open(self._source, self._settings)
        except ModuleNotFoundError as error:
            hint = f"pip install 'lance-federator[{self.connector.extra}]'" if self.connector.extra else None
            raise ConfigError(f"{self.connector.impl} needs the module {error.name!r}", hint=hint) from error

    def __reduce__(self) -> tuple[Any, ...]:
        if self._properties is None:
            # Its settings hold resolved secrets.
            raise TypeError(f"the namespace of the configured source {self._source!r} is not picklable")
        return (_revive, (type(self), self._properties))

    def namespace_id(self) -> str:
        """Names the source and its settings without secrets; two ids are equal only if the secrets are, too."""
        shown = repr(self._settings)
        hidden = hashlib.blake2b(key=_ID_KEY, digest_size=6)
        for item in sorted(vars(self._settings).items(), key=lambda item: item[0]):
            hidden.update(repr(item).encode("utf-8", "surrogatepass"))
        return f"{type(self).__name__} {{ source: {self._source!r}, settings: {shown}, id: {hidden.hexdigest()} }}"

    def __repr__(self) -> str:
        return self.namespace_id()

    def close(self) -> None:
        """Closes idle connections; the namespace stays usable."""
        self._pool.close()

    @contextmanager
    def lent(self) -> Iterator[Catalog]:
        """A catalog of this source's own connections, for what the official interface does not have; its errors stay ours."""
        with self._pool.lend() as catalog:
            yield catalog

    # Namespaces

    def create_namespace(self, request: lance.CreateNamespaceRequest) -> lance.CreateNamespaceResponse:
        with self._answering() as catalog:
            asked = _parsed(lance.CreateNamespaceRequest, request)
            mode = choice("mode", asked.mode, "create", "exist_ok", "overwrite")
            path = self._ids.new_namespace(asked.id)
            wanted = namespace_record(self._source, path, asked.properties)
            try:
                made = catalog.create_namespace(wanted)
            except NamespaceAlreadyExists:
                if mode == "create":
                    raise
                if mode == "overwrite":
                    self._refuse_other_depth(catalog, path)
                    self._refuse_unconfirmed(catalog, path, asked.context)
                    catalog.drop_namespace(path)
                    made = catalog.create_namespace(wanted)
                else:
                    made = catalog.describe_namespace(path)
            return lance.CreateNamespaceResponse(properties=namespace_properties(made))

    def list_namespaces(self, request: lance.ListNamespacesRequest) -> lance.ListNamespacesResponse:
        with self._answering() as catalog:
            asked = _parsed(lance.ListNamespacesRequest, request)
            path = self._ids.namespace(asked.id)
            names = self._children(catalog, path)
            page, token = page_of(names, asked.page_token, asked.limit)
            return lance.ListNamespacesResponse(namespaces=page, page_token=token)

    def describe_namespace(self, request: lance.DescribeNamespaceRequest) -> lance.DescribeNamespaceResponse:
        with self._answering() as catalog:
            asked = _parsed(lance.DescribeNamespaceRequest, request)
            record = catalog.describe_namespace(self._ids.namespace(asked.id))
            return lance.DescribeNamespaceResponse(properties=namespace_properties(record))

    def namespace_exists(self, request: lance.NamespaceExistsRequest) -> lance.NamespaceExistsResponse:
        with self._answering() as catalog:
            asked = _parsed(lance.NamespaceExistsRequest, request)
            catalog.describe_namespace(self._ids.namespace(asked.id))
            return lance.NamespaceExistsResponse()

    def drop_namespace(self, request: lance.DropNamespaceRequest) -> lance.DropNamespaceResponse:
        with self._answering() as catalog:
            asked = _parsed(lance.DropNamespaceRequest, request)
            mode = choice("mode", asked.mode, "fail", "skip")
            behavior = choice("behavior", asked.behavior, "restrict", "cascade")
            path = self._ids.namespace(asked.id)
            if path == ROOT:
                raise InvalidInput("the root namespace cannot be dropped")
            if behavior == "cascade" and not self._capabilities.cascade:
                raise Unsupported(f"{self._source}: this catalog drops empty namespaces only", hint="behavior RESTRICT")
            depths = self._capabilities.creates_namespaces_at
            if depths and len(path) not in depths:
                raise Unsupported(f"{self._source}: this catalog drops no namespaces of {len(path)} levels")
            try:
                record = catalog.describe_namespace(path)
                if behavior == "cascade":
                    drop_with_contents(catalog, path, max_depth=self._capabilities.max_depth)
                else:
                    self._refuse_unconfirmed(catalog, path, asked.context)
                    catalog.drop_namespace(path)
            except NamespaceNotFound:
                if mode == "fail":
                    raise
                return lance.DropNamespaceResponse()
            return lance.DropNamespaceResponse(properties=namespace_properties(record))

    # Tables

    def list_tables(self, request: lance.ListTablesRequest) -> lance.ListTablesResponse:
        with self._answering() as catalog:
            asked = _parsed(lance.ListTablesRequest, request)
            path = self._ids.namespace(asked.id)
            names = self._tables(catalog, path, asked.include_declared)
            page, token = page_of(names, asked.page_token, asked.limit)
            return lance.ListTablesResponse(tables=page, page_token=token)

    def list_all_tables(self, request: lance.ListTablesRequest) -> lance.ListTablesResponse:
        """Every table below the namespace, by its full identifier joined with ``$`` (``path_key``)."""
        with self._answering() as catalog:
            asked = _parsed(lance.ListTablesRequest, request)
            keys: list[str] = []
            waiting = [self._ids.namespace(asked.id)]
            while waiting:
                path = waiting.pop()
                keys += [path_key((*path, name)) for name in self._tables(catalog, path, asked.include_declared)]
                waiting += [(*path, name) for name in self._children(catalog, path)]
            page, token = page_of(keys, asked.page_token, asked.limit)
            return lance.ListTablesResponse(tables=page, page_token=token)

    def describe_table(self, request: lance.DescribeTableRequest) -> lance.DescribeTableResponse:
        """Location, storage options and properties, by catalog metadata alone; nothing that needs the dataset opened."""
        with self._answering() as catalog:
            asked = _parsed(lance.DescribeTableRequest, request)
            if asked.load_detailed_metadata:
                raise Unsupported("load_detailed_metadata: the catalog holds the location only", hint="open the table there")
            if asked.version is not None or asked.tag is not None or asked.branch is not None:
                raise Unsupported("version, tag and branch: the catalog knows none", hint="open the table at its location")
            record = self._described(catalog, self._ids.table(asked.id))
            declared = catalog.only_declared(record) if asked.check_declared and isinstance(catalog, SeesStorage) else None
            return lance.DescribeTableResponse(
                location=record.location,
                table_uri=table_uri(record.location) if asked.with_table_uri and record.location else None,
                storage_options=storage_options(self._settings.storage, record, vend_credentials=asked.vend_credentials),
                properties=self._table_properties(record),
                is_only_declared=declared,
                schema=_schema(catalog, record),
            )

    def table_exists(self, request: lance.TableExistsRequest) -> lance.TableExistsResponse:
        with self._answering() as catalog:
            asked = _parsed(lance.TableExistsRequest, request)
            if asked.version is not None:
                raise Unsupported("version: the catalog knows none", hint="open the table at its location")
            self._described(catalog, self._ids.table(asked.id))
            return lance.TableExistsResponse()

    def declare_table(self, request: lance.DeclareTableRequest) -> lance.DeclareTableResponse:
        with self._answering() as catalog:
            asked = _parsed(lance.DeclareTableRequest, request)
            wanted = self._wanted(catalog, self._ids.new_table(asked.id), asked.location, asked.properties)
            made = catalog.declare_table(wanted)
            return lance.DeclareTableResponse(
                location=made.location,
                storage_options=storage_options(self._settings.storage, made, vend_credentials=asked.vend_credentials),
                properties=self._table_properties(made),
            )

    def register_table(self, request: lance.RegisterTableRequest) -> lance.RegisterTableResponse:
        """Declares a table that exists at ``location``; OVERWRITE replaces a Lance declaration of that name."""
        with self._answering() as catalog:
            asked = _parsed(lance.RegisterTableRequest, request)
            mode = choice("mode", asked.mode, "create", "overwrite")
            wanted = self._wanted(catalog, self._ids.new_table(asked.id), asked.location, asked.properties)
            try:
                made = catalog.declare_table(wanted)
            except TableAlreadyExists:
                if mode == "create":
                    raise
                before = self._described(catalog, wanted.path)
                if not self._capabilities.can_alter:
                    raise Unsupported(f"{self._source}: a declaration cannot be changed", hint="deregister it first") from None
                made = catalog.update_table(before, wanted)
            return lance.RegisterTableResponse(location=made.location, properties=self._table_properties(made))

    def deregister_table(self, request: lance.DeregisterTableRequest) -> lance.DeregisterTableResponse:
        with self._answering() as catalog:
            asked = _parsed(lance.DeregisterTableRequest, request)
            path = self._ids.table(asked.id)
            record = self._described(catalog, path)
            catalog.deregister_table(record)
            properties = self._table_properties(record)
            return lance.DeregisterTableResponse(id=list(path), location=record.location, properties=properties)

    def rename_table(self, request: lance.RenameTableRequest) -> lance.RenameTableResponse:
        """Renames the declaration, within its namespace unless ``new_namespace_id`` is given; location and data stay."""
        with self._answering() as catalog:
            asked = _parsed(lance.RenameTableRequest, request)
            path = self._ids.table(asked.id)
            above = path[:-1] if asked.new_namespace_id is None else tuple(asked.new_namespace_id)
            new_path = self._ids.new_table([*above, asked.new_table_name])
            catalog.rename_table(self._described(catalog, path), new_path)
            return lance.RenameTableResponse()

    def drop_table(self, request: lance.DropTableRequest) -> lance.DropTableResponse:  # noqa: ARG002
        """Refused: dropping a table deletes its data."""
        raise lance.UnsupportedOperationError(f"{self._source}: tables are deregistered here, their data is never deleted")

    # What the operations share

    @contextmanager
    def _answering(self) -> Iterator[Catalog]:
        """A catalog for one operation; the one place where our errors become the official ones."""
        try:
            with self._pool.lend() as catalog, _edge(self._source):
                yield catalog
        except CatalogError as error:
            raise lance.from_error_code(error.code, str(error)) from error
        except ConfigError as error:
            raise lance.InvalidInputError(str(error)) from error

    def _refuse_other_depth(self, catalog: Catalog, path: Path) -> None:
        """Raises NamespaceAlreadyExists where a short path names a namespace of another depth, which its replacement would not be."""
        existing = catalog.canonical_path(path)
        if len(existing) != len(path):
            raise NamespaceAlreadyExists(
                f"{self._source}: {path_key(path)} is {path_key(existing)}, and would be replaced by another kind of namespace",
                hint=f"OVERWRITE {path_key(existing)}, or choose another name",
            )

    def _refuse_unconfirmed(self, catalog: Catalog, path: Path, context: Mapping[str, str] | None) -> None:
        """Raises InvalidInput where the drop would take hidden tables along, and nothing says that the caller knows.

        Raises NamespaceNotEmpty instead where the listing shows an object: then no confirmation helps.
        """
        confirmed = self._settings.drops_confirmed or (context or {}).get(f"header.{CONFIRM_HEADER}") == CASCADES
        if self._capabilities.drop_cascades and not confirmed:
            if held := [*catalog.list_namespaces(path), *catalog.list_tables(path)]:
                raise NamespaceNotEmpty(f"{self._source}: {path_key(path)} is not empty: it holds {held[0]}")
            raise InvalidInput(
                f"{self._source}: the catalog drops {path_key(path)} with every table in it, also those that its listing leaves out",
                hint=f"confirm it with the header {CONFIRM_HEADER}: {CASCADES}",
            )

    def _children(self, catalog: Catalog, path: Path) -> list[str]:
        if len(path) < self._capabilities.max_depth:
            return catalog.list_namespaces(path)
        catalog.describe_namespace(path)
        return []

    def _tables(self, catalog: Catalog, path: Path, include_declared: bool | None) -> list[str]:
        if len(path) < self._capabilities.min_depth:
            catalog.describe_namespace(path)
            return []
        names = catalog.list_tables(path)
        if include_declared is not False:
            return names
        if not isinstance(catalog, SeesStorage):
            raise Unsupported("include_declared = false: the catalog does not know which tables have been written")
        return [name for name in names if not catalog.only_declared(catalog.describe_table((*path, name)))]

    def _described(self, catalog: Catalog, path: Path) -> TableRecord:
        record = catalog.describe_table(path)
        if record.kind is Kind.MANAGED_TABLE:
            raise InvalidInput(f"{self._source}: {record.key} is managed by its catalog, not an external Lance table")
        if record.kind is not Kind.TABLE:
            raise Internal(f"{self._source}: {record.key} could not be described: {record.problem}")
        return record

    def _wanted(self, catalog: Catalog, path: Path, location: str | None, properties: Mapping[str, str] | None) -> TableRecord:
        catalog.describe_namespace(path[:-1])
        if location and not is_location(location):
            raise InvalidInput(f"{location!r} is no location", hint="an absolute path or a URI such as s3://bucket/key")
        chosen = location or catalog.new_location(path, lambda default: is_unused(default, self._settings.storage))
        return TableRecord(self._source, path, chosen, table_properties(properties))

    def _table_properties(self, record: TableRecord) -> dict[str, str] | None:
        return dict(record.properties) if self._capabilities.keeps_properties else None


@contextmanager
def _edge(source: str) -> Iterator[None]:
    try:
        yield
    except (FederatorError, lance.LanceNamespaceError):
        raise
    except Exception as error:
        raise of_connector(source, error) from error


def namespace_class(connector: Connector[Any], name: str) -> type[CatalogNamespace]:
    """A class of the Lance interface for one connector, constructed by ``cls(**properties)``.

    Usually made by ``federator.connector.lazy.lazy_namespace``, which sets its module.
    """
    doc = f"The Lance namespace of impl ``{connector.impl}``."
    return type(name, (CatalogNamespace,), {"connector": connector, "__doc__": doc})


def _schema(catalog: Catalog, record: TableRecord) -> JsonArrowSchema | None:
    told = catalog.json_schema(record) if isinstance(catalog, KnowsSchema) else None
    return JsonArrowSchema.model_validate(told) if told is not None else None


def _revive(cls: type[CatalogNamespace], properties: Mapping[str, str]) -> CatalogNamespace:
    return cls(**properties)


def _parsed(model: type[M], request: object) -> M:
    """The request as its model; the texts of pydantic's complaints, without the values that a caller sent."""
    if isinstance(request, model):
        return request
    try:
        return model.model_validate(dict(request))  # type: ignore[call-overload]
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_input=False))
        raise InvalidInput(f"{model.__name__}: {problems}") from None
    except TypeError:
        raise InvalidInput(f"expected a {model.__name__}, got {type(request).__name__}") from None
