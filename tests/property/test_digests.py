"""Digests depend on content only, in any order."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from federator.model import NamespaceRecord, TableRecord, canonical_json, digest_of, fold_digest
from federator.model.digests import VOLATILE_PROPERTIES

TEXT = st.text(max_size=20)
PROPERTIES = st.dictionaries(TEXT, TEXT, max_size=6)
VOLATILE = st.dictionaries(st.sampled_from(sorted(VOLATILE_PROPERTIES)), TEXT)
PATH = st.lists(st.text(min_size=1, max_size=10), min_size=1, max_size=4).map(tuple)


@st.composite
def tables(draw: st.DrawFn) -> TableRecord:
    optional = st.none() | TEXT
    return TableRecord(
        "source", draw(PATH), draw(optional), draw(PROPERTIES), draw(optional), draw(optional), draw(optional), draw(optional)
    )


@given(PROPERTIES, st.randoms())
def test_the_order_of_keys_does_not_matter(properties: dict[str, str], order: random.Random) -> None:
    items = list(properties.items())
    order.shuffle(items)
    assert digest_of(dict(items)) == digest_of(properties)
    assert canonical_json(dict(items)) == canonical_json(properties)


@given(tables(), VOLATILE, TEXT)
def test_what_catalogs_rewrite_on_their_own_does_not_matter(table: TableRecord, volatile: dict[str, str], text: str) -> None:
    calm = {key: value for key, value in table.properties.items() if key not in VOLATILE_PROPERTIES}
    noisy = replace(table, properties={**calm, **volatile}, version=text)
    assert noisy.digest == replace(table, properties=calm).digest


@given(tables(), tables())
def test_equal_digests_mean_equal_content(first: TableRecord, other: TableRecord) -> None:
    same = replace(first, version=None) == replace(other, version=None)
    if same:
        assert first.digest == other.digest
    elif first.digest == other.digest:
        assert first.canonical == other.canonical
        assert (first.path, first.doc, first.owner, first.schema, first.native_id) == (
            other.path,
            other.doc,
            other.owner,
            other.schema,
            other.native_id,
        )


@given(tables(), TEXT)
def test_content_changes_the_digest(table: TableRecord, text: str) -> None:
    changed = replace(table, properties={**table.properties, "key": text + "x"})
    if changed.properties != table.properties:
        assert changed.digest != table.digest
    assert NamespaceRecord("source", table.path).digest != TableRecord("source", table.path).digest


@given(st.lists(TEXT.map(digest_of), unique=True), st.randoms())
def test_a_fold_is_the_same_in_any_order_and_fits_a_signed_integer(digests: list[str], order: random.Random) -> None:
    shuffled = list(digests)
    order.shuffle(shuffled)
    assert fold_digest(shuffled) == fold_digest(digests)
    assert 0 <= fold_digest(digests) < 2**60
    if digests:
        assert fold_digest(digests[1:]) != fold_digest(digests)
