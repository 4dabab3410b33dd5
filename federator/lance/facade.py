"""The facade: the official Lance namespace interface over any ``Catalog``.

Only this module of the core imports ``lance_namespace``. Import the module locally, or use ``lazy_facade_class``. It fixes what the
specs leave open, for every catalog. Listings have the children's own names, sorted. OVERWRITE is a RESTRICT drop followed by a create.
CASCADE removes declarations only. No operation deletes data.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Self, TypeVar

import lance_namespace as lance
from lance_namespace_urllib3_client.models.json_arrow_schema import JsonArrowSchema
from pydantic import BaseModel, ValidationError

from federator.connector.catalog_pool import CatalogPool
from federator.connector.errors import (
    CatalogError,
    ConfigError,
    Internal,
    InvalidInput,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    PermissionDenied,
    ServiceUnavailable,
    TableAlreadyExists,
    Unsupported,
)
from federator.connector.native_errors import translate_native_errors
from federator.connector.options import ConnectorSettings
from federator.connector.port import LANCE, TABLE_TYPE_KEY, Catalog, Connector
from federator.connector.storage_use import is_unused
from federator.lance.cascade import drop_cascade
from federator.lance.facade_mapping import (
    CASCADES,
    CONFIRM_HEADER,
    namespace_from_properties,
    namespace_to_properties,
    parse_choice,
    storage_options_for,
    table_uri,
    validate_table_properties,
)
from federator.lance.identifiers import IdentifierParser
from federator.lance.inspection import REFERS_OUTSIDE, inspect_location
from federator.lance.opening import opening_options
from federator.lance.paging import decode_page_token, paginate
from federator.model import Kind, NamespaceRecord, Path, TableRecord, is_location, path_key
from federator.runtime.input_faults import describe_faults

M = TypeVar("M", bound=BaseModel)
_INSPECTION_ERRORS: dict[str, type[CatalogError]] = {"denied": PermissionDenied, "unreachable": ServiceUnavailable}

# A key for the hash, so that an id in a log cannot be used to guess a secret.
_ID_KEY = secrets.token_bytes(16)


def _list_none(location: str) -> Set[str]:  # noqa: ARG001 - a facade without an index knows no other declarations
    return frozenset()


class CatalogNamespace(lance.LanceNamespace):
    """A Lance namespace of one catalog. It is thread-safe and picklable, and connects at its first operation.

    Every operation accepts the official request model, or any mapping with its fields, as lancedb sends. Errors are the official
    classes of ``lance_namespace.errors``.
    """

    connector: ClassVar[Connector[Any]]

    def __init__(self, **properties: Any) -> None:
        """Create a facade from the connector's configuration. Keys may have the impl as prefix. Raise InvalidInputError."""
        texts = {key: str(value) for key, value in properties.items()}
        try:
            settings = self.connector.parse_settings(texts)
        except ConfigError as error:
            raise lance.InvalidInputError(str(error)) from error
        self._properties: dict[str, str] | None = texts
        self._bind(self.connector.impl, settings)

    @classmethod
    def for_source(
        cls, source: str, settings: ConnectorSettings, list_declaring: Callable[[str], Set[str]] = _list_none
    ) -> Self:
        """Return the facade of a configured source. Its errors and records name the source. It is not picklable.

        ``list_declaring`` returns the known tables at a location, as path keys with their sources. A new table gets no default
        location that another table has.
        """
        facade = cls.__new__(cls)
        facade._properties = None
        facade._bind(source, settings, list_declaring)
        return facade

    def _bind(self, source: str, settings: ConnectorSettings, list_declaring: Callable[[str], Set[str]] = _list_none) -> None:
        self._list_declaring = list_declaring
        self._source = source
        self._settings = settings
        self._capabilities = self.connector.capabilities_for(settings)
        self._ids = IdentifierParser(source, self._capabilities)
        self._pool = CatalogPool(self._open)

    def _open(self) -> Catalog:
        return self.connector.open_catalog(self._source, self._settings)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._properties is None:
            # The settings contain resolved secrets.
            raise TypeError(f"the namespace of the configured source {self._source!r} is not picklable")
        return (_unpickle_facade, (type(self), self._properties))

    def namespace_id(self) -> str:
        """Return an id with the source and its settings without secrets. Ids are equal only if the secrets are equal too."""
        masked = repr(self._settings)
        keyed_hash = hashlib.blake2b(key=_ID_KEY, digest_size=6)
        for item in sorted(vars(self._settings).items(), key=lambda item: item[0]):
            keyed_hash.update(repr(item).encode("utf-8", "surrogatepass"))
        return f"{type(self).__name__} {{ source: {self._source!r}, settings: {masked}, id: {keyed_hash.hexdigest()} }}"

    def __repr__(self) -> str:
        return self.namespace_id()

    def close(self) -> None:
        """Close idle connections. The namespace stays usable."""
        self._pool.close()

    @contextmanager
    def borrow_catalog(self) -> Iterator[Catalog]:
        """Borrow a catalog, for operations that the official interface does not have. Errors are FederatorErrors."""
        with self._pool.borrow() as catalog:
            yield catalog

    # Namespaces

    def create_namespace(self, request: lance.CreateNamespaceRequest) -> lance.CreateNamespaceResponse:
        with self._translate_errors() as catalog:
            parsed = _parse_request(lance.CreateNamespaceRequest, request)
            mode = parse_choice("mode", parsed.mode, "create", "exist_ok", "overwrite")
            path = self._ids.parse_new_namespace(parsed.id)
            desired = namespace_from_properties(self._source, path, parsed.properties)
            try:
                record = catalog.create_namespace(desired)
            except NamespaceAlreadyExists:
                if mode == "create":
                    raise
                if mode == "overwrite":
                    self._refuse_other_depth(catalog, path)
                    self._refuse_unconfirmed(catalog, path, parsed.context)
                    catalog.drop_namespace(path)
                    record = catalog.create_namespace(desired)
                else:
                    record = catalog.describe_namespace(path)
            return lance.CreateNamespaceResponse(properties=self._namespace_properties(record))

    def list_namespaces(self, request: lance.ListNamespacesRequest) -> lance.ListNamespacesResponse:
        with self._translate_errors() as catalog:
            parsed = _parse_request(lance.ListNamespacesRequest, request)
            path = self._ids.parse_namespace(parsed.id)
            names = self._list_children(catalog, path)
            page, token = paginate(names, parsed.page_token, parsed.limit)
            return lance.ListNamespacesResponse(namespaces=page, page_token=token)

    def describe_namespace(self, request: lance.DescribeNamespaceRequest) -> lance.DescribeNamespaceResponse:
        with self._translate_errors() as catalog:
            parsed = _parse_request(lance.DescribeNamespaceRequest, request)
            record = catalog.describe_namespace(self._ids.parse_namespace(parsed.id))
            return lance.DescribeNamespaceResponse(properties=self._namespace_properties(record))

    def _namespace_properties(self, record: NamespaceRecord) -> dict[str, str]:
        return namespace_to_properties(record, self.connector.native_property_names)

    def namespace_exists(self, request: lance.NamespaceExistsRequest) -> lance.NamespaceExistsResponse:
        with self._translate_errors() as catalog:
            parsed = _parse_request(lance.NamespaceExistsRequest, request)
            catalog.describe_namespace(self._ids.parse_namespace(parsed.id))
            return lance.NamespaceExistsResponse()

    def drop_namespace(self, request: lance.DropNamespaceRequest) -> lance.DropNamespaceResponse:
        with self._translate_errors() as catalog:
            parsed = _parse_request(lance.DropNamespaceRequest, request)
            mode = parse_choice("mode", parsed.mode, "fail", "skip")
            behavior = parse_choice("behavior", parsed.behavior, "restrict", "cascade")
            path = self._ids.parse_dropped_namespace(parsed.id)
            if behavior == "cascade" and not self._capabilities.cascade:
                raise Unsupported(f"{self._source}: this catalog drops empty namespaces only", hint="use behavior RESTRICT")
            try:
                record = catalog.describe_namespace(path)
                if behavior == "cascade":
                    drop_cascade(catalog, path, max_depth=self._capabilities.max_depth)
                else:
                    self._refuse_unconfirmed(catalog, path, parsed.context)
                    catalog.drop_namespace(path)
            except NamespaceNotFound:
                if mode == "fail":
                    raise
                return lance.DropNamespaceResponse()
            return lance.DropNamespaceResponse(properties=self._namespace_properties(record))

    # Tables

    def list_tables(self, request: lance.ListTablesRequest) -> lance.ListTablesResponse:
        with self._translate_errors() as catalog:
            parsed = _parse_request(lance.ListTablesRequest, request)
            path = self._ids.parse_namespace(parsed.id)
            if len(path) < self._capabilities.min_depth:
                # The specs differ: some catalogs refuse a namespace above the level of tables, others list none.
                names = catalog.list_tables(path)
            elif parsed.limit and parsed.limit > 0 and parsed.include_declared is not False:
                # One name more than the page shows whether there is another page.
                after = decode_page_token(parsed.page_token) if parsed.page_token else ""
                names = catalog.list_tables_after(path, after, parsed.limit + 1)
            else:
                names = self._list_lance_tables(catalog, path, parsed.include_declared)
            page, token = paginate(names, parsed.page_token, parsed.limit)
            return lance.ListTablesResponse(tables=page, page_token=token)

    def list_all_tables(self, request: lance.ListTablesRequest) -> lance.ListTablesResponse:
        """List every table below the namespace, by path key."""
        with self._translate_errors() as catalog:
            parsed = _parse_request(lance.ListTablesRequest, request)
            keys: list[str] = []
            pending = [self._ids.parse_namespace(parsed.id)]
            while pending:
                path = pending.pop()
                keys += [path_key((*path, name)) for name in self._list_lance_tables(catalog, path, parsed.include_declared)]
                pending += [(*path, name) for name in self._list_children(catalog, path)]
            page, token = paginate(keys, parsed.page_token, parsed.limit)
            return lance.ListTablesResponse(tables=page, page_token=token)

    def describe_table(self, request: lance.DescribeTableRequest) -> lance.DescribeTableResponse:
        """Return location, storage options and properties from catalog metadata, without opening the dataset."""
        with self._translate_errors() as catalog:
            parsed = _parse_request(lance.DescribeTableRequest, request)
            if parsed.load_detailed_metadata:
                raise Unsupported("load_detailed_metadata: the catalog only has the location", hint="open the table there")
            if parsed.version is not None or parsed.tag is not None or parsed.branch is not None:
                raise Unsupported("version, tag and branch: the catalog has none", hint="open the table at its location")
            record = self._describe_lance_table(catalog, self._ids.parse_table(parsed.id))
            return lance.DescribeTableResponse(
                location=record.location,
                table_uri=table_uri(record.location) if parsed.with_table_uri and record.location else None,
                storage_options=self._storage_options(record, parsed.vend_credentials),
                properties=self._table_properties(record),
                is_only_declared=self._is_only_declared(catalog, record) if parsed.check_declared else None,
                schema=_json_schema(catalog, record),
                managed_versioning=False,
            )

    def table_exists(self, request: lance.TableExistsRequest) -> lance.TableExistsResponse:
        with self._translate_errors() as catalog:
            parsed = _parse_request(lance.TableExistsRequest, request)
            if parsed.version is not None:
                raise Unsupported("version: the catalog has none", hint="open the table at its location")
            self._describe_lance_table(catalog, self._ids.parse_table(parsed.id))
            return lance.TableExistsResponse()

    def declare_table(self, request: lance.DeclareTableRequest, *, schema: str | None = None) -> lance.DeclareTableResponse:
        """Declare a table. ``schema`` are its columns (``TableRecord.schema``), which only some catalogs keep."""
        with self._translate_errors() as catalog:
            parsed = _parse_request(lance.DeclareTableRequest, request)
            desired = self._desired_record(catalog, self._ids.parse_new_table(parsed.id), parsed.location, parsed.properties)
            record = catalog.declare_table(replace(desired, schema=schema if self._capabilities.keeps_columns else None))
            return lance.DeclareTableResponse(
                location=record.location,
                storage_options=self._storage_options(record, parsed.vend_credentials),
                properties=self._table_properties(record),
                managed_versioning=False,
            )

    def register_table(self, request: lance.RegisterTableRequest) -> lance.RegisterTableResponse:
        """Declare a table that exists at ``location``. OVERWRITE replaces a Lance declaration with the same name."""
        with self._translate_errors() as catalog:
            parsed = _parse_request(lance.RegisterTableRequest, request)
            mode = parse_choice("mode", parsed.mode, "create", "overwrite")
            desired = self._desired_record(catalog, self._ids.parse_new_table(parsed.id), parsed.location, parsed.properties)
            try:
                record = catalog.declare_table(desired)
            except TableAlreadyExists:
                if mode == "create":
                    raise
                before = self._describe_lance_table(catalog, desired.path)
                if not self._capabilities.can_alter:
                    raise Unsupported(f"{self._source}: a declaration cannot be changed", hint="deregister it first") from None
                record = catalog.update_table(before, desired)
            return lance.RegisterTableResponse(location=record.location, properties=self._table_properties(record))

    def deregister_table(self, request: lance.DeregisterTableRequest) -> lance.DeregisterTableResponse:
        with self._translate_errors() as catalog:
            parsed = _parse_request(lance.DeregisterTableRequest, request)
            path = self._ids.parse_table(parsed.id)
            record = self._describe_lance_table(catalog, path)
            catalog.deregister_table(record)
            properties = self._table_properties(record)
            return lance.DeregisterTableResponse(id=list(path), location=record.location, properties=properties)

    def rename_table(self, request: lance.RenameTableRequest) -> lance.RenameTableResponse:
        """Rename the declaration, within its namespace unless ``new_namespace_id`` is given. Location and data stay."""
        with self._translate_errors() as catalog:
            parsed = _parse_request(lance.RenameTableRequest, request)
            path = self._ids.parse_table(parsed.id)
            new_namespace = path[:-1] if parsed.new_namespace_id is None else tuple(parsed.new_namespace_id)
            new_path = self._ids.parse_new_table([*new_namespace, parsed.new_table_name])
            catalog.rename_table(self._describe_lance_table(catalog, path), new_path)
            return lance.RenameTableResponse()

    def drop_table(self, request: lance.DropTableRequest) -> lance.DropTableResponse:  # noqa: ARG002
        """Raise UnsupportedOperationError, because dropping a table deletes its data."""
        raise lance.UnsupportedOperationError(f"{self._source}: tables are deregistered here, their data is never deleted")

    # Helpers of the operations

    @contextmanager
    def _translate_errors(self) -> Iterator[Catalog]:
        """Borrow a catalog for one operation, and translate FederatorErrors into the official errors."""
        try:
            with self._pool.borrow() as catalog, translate_native_errors(self._source, lance.LanceNamespaceError):
                yield catalog
        except CatalogError as error:
            raise lance.from_error_code(error.code, str(error)) from error
        except ConfigError as error:
            raise lance.InvalidInputError(str(error)) from error

    def _refuse_other_depth(self, catalog: Catalog, path: Path) -> None:
        """Raise NamespaceAlreadyExists if the catalog has it under a path of another depth: OVERWRITE would create a different one."""
        existing = catalog.canonical_path(path)
        if len(existing) != len(path):
            raise NamespaceAlreadyExists(
                f"{self._source}: {path_key(path)} is {path_key(existing)}, which another kind of namespace would replace",
                hint=f"OVERWRITE {path_key(existing)}, or choose another name",
            )

    def _refuse_unconfirmed(self, catalog: Catalog, path: Path, context: Mapping[str, str] | None) -> None:
        """Raise InvalidInput if the catalog's drop would remove hidden tables, and the request does not confirm it.

        Raise NamespaceNotEmpty instead if the listing shows an object: a confirmation does not permit that.
        """
        confirmed = self._settings.drops_confirmed or (context or {}).get(f"header.{CONFIRM_HEADER}") == CASCADES
        if self._capabilities.drop_cascades and not confirmed:
            if children := [*catalog.list_namespaces(path), *catalog.list_tables(path)]:
                raise NamespaceNotEmpty(f"{self._source}: {path_key(path)} is not empty: it contains {children[0]}")
            raise InvalidInput(
                f"{self._source}: the catalog drops {path_key(path)} with every table in it, also tables that its listing omits",
                hint=f"confirm with the header {CONFIRM_HEADER}: {CASCADES}",
            )

    def _list_children(self, catalog: Catalog, path: Path) -> list[str]:
        if len(path) < self._capabilities.max_depth:
            return catalog.list_namespaces(path)
        catalog.describe_namespace(path)
        return []

    def _list_lance_tables(self, catalog: Catalog, path: Path, include_declared: bool | None) -> list[str]:
        if len(path) < self._capabilities.min_depth:
            catalog.describe_namespace(path)
            return []
        names = catalog.list_tables(path)
        if include_declared is not False:
            return names
        return [name for name in names if not self._is_only_declared(catalog, catalog.describe_table((*path, name)))]

    def _is_only_declared(self, catalog: Catalog, record: TableRecord) -> bool:
        """Return whether no Lance table can be opened at the location. Raise PermissionDenied, ServiceUnavailable, Unsupported.

        If the catalog does not report this, the location is opened with the options of the source.
        """
        if self._capabilities.reports_unwritten:
            return catalog.is_only_declared(record)
        settings = self._settings
        try:
            options = opening_options(settings, record.location, record.properties)
            allowed, mounts = settings.allowed_bases, [settings.root_uri]
            inspection = inspect_location(record.location or "", options, allowed=allowed, mounts=mounts)
        except ImportError as error:
            hint = "pip install 'lance-federator[data]'"
            raise Unsupported("the storage of tables is opened with pylance", hint=hint) from error
        if inspection.state == REFERS_OUTSIDE:
            return False
        if error_class := _INSPECTION_ERRORS.get(inspection.state):
            raise error_class(f"{self._source}: {record.key} cannot be opened: {inspection.message}")
        return inspection.state != "valid"

    def _describe_lance_table(self, catalog: Catalog, path: Path) -> TableRecord:
        record = catalog.describe_table(path)
        if record.kind is Kind.MANAGED_TABLE and not record.is_read_only:
            raise InvalidInput(f"{self._source}: {record.key} is managed by its catalog, not an external Lance table")
        if record.kind is Kind.UNDESCRIBED:
            raise Internal(f"{self._source}: {record.key} could not be described: {record.problem}")
        return record

    def _desired_record(
        self, catalog: Catalog, path: Path, location: str | None, properties: Mapping[str, str] | None
    ) -> TableRecord:
        catalog.describe_namespace(path[:-1])
        if location and not is_location(location):
            raise InvalidInput(f"{location!r} is not a location", hint="use an absolute path or a URI such as s3://bucket/key")
        chosen = location or catalog.new_location(path, lambda default: self._is_free(catalog.canonical_path(path), default))
        return TableRecord(self._source, path, chosen, validate_table_properties(properties))

    def _is_free(self, path: Path, location: str) -> bool:
        """Return whether a location has neither data nor another declaration."""
        declaring = self._list_declaring(location)
        if not self._capabilities.can_alter:
            # The catalog renames no table. Where it does, a declaration of this very name may be that of a renamed table.
            declaring -= {path_key((self._source, *path))}
        return not declaring and is_unused(location, opening_options(self._settings, location))

    def _storage_options(self, record: TableRecord, vend_credentials: bool | None) -> dict[str, str]:
        settings = self._settings
        return storage_options_for(settings.storage, record, plain=settings.plain, vend_credentials=vend_credentials)

    def _table_properties(self, record: TableRecord) -> dict[str, str] | None:
        return dict(record.properties) | {TABLE_TYPE_KEY: LANCE} if self._capabilities.keeps_properties else None


def facade_class(connector: Connector[Any], name: str) -> type[CatalogNamespace]:
    """Return a class of the Lance interface for one connector, constructed by ``cls(**properties)``.

    Usually called by ``federator.lance.lazy_facade.lazy_facade_class``, which sets the module of the class.
    """
    doc = f"The Lance namespace of impl ``{connector.impl}``."
    return type(name, (CatalogNamespace,), {"connector": connector, "__doc__": doc})


def _json_schema(catalog: Catalog, record: TableRecord) -> JsonArrowSchema | None:
    schema = catalog.json_schema(record)
    return JsonArrowSchema.model_validate(schema) if schema is not None else None


def _unpickle_facade(cls: type[CatalogNamespace], properties: Mapping[str, str]) -> CatalogNamespace:
    return cls(**properties)


def _parse_request(model: type[M], request: object) -> M:
    """Return the request as its model. Raise InvalidInput, without the values of the request."""
    if isinstance(request, model):
        return request
    try:
        return model.model_validate(dict(request))  # type: ignore[call-overload]
    except ValidationError as error:
        raise InvalidInput(f"{model.__name__}: {describe_faults(error.errors(include_input=False))}") from None
    except TypeError:
        raise InvalidInput(f"expected a {model.__name__}, got {type(request).__name__}") from None
