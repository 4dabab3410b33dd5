"""Canonical locations: one text per location, and never one text for two locations."""

from __future__ import annotations

from urllib.parse import quote, unquote

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from federator.model import (
    LocationAliases,
    canonical_location,
    encode_key,
    is_ambiguous,
    is_location,
    local_path,
    parent_locations,
    to_lance_uri,
)

# What readers of URIs strip from both ends.
STRIPPED = "".join(map(chr, range(0x21)))
SEGMENT = st.text(min_size=1, max_size=12).filter(lambda text: "/" not in text and text not in (".", ".."))
PLAIN = st.text(alphabet="abcXYZ019_-. é😀%#?$", min_size=1, max_size=12).filter(lambda text: text not in (".", ".."))
SEGMENTS = st.lists(SEGMENT | PLAIN, min_size=1, max_size=4)
BUCKET = st.from_regex(r"[a-z0-9][a-z0-9.-]{1,10}[a-z0-9]", fullmatch=True)
SCHEMES = st.sampled_from(
    ["s3", "s3a", "gs", "hdfs", "abfss", "file", "S3", "http", "https", "az", "wasb", "abfs", "s3+ddb", "file-object-store"]
)
AZURE = st.builds(
    lambda container, account, service: f"{container}{account}.{service}.core.windows.net",
    st.sampled_from(["", "c@", "$web@", "c@d@"]), st.sampled_from(["acct", "ACCT", "a.b"]), st.sampled_from(["blob", "dfs", "file"]),
)  # fmt: skip
URIS = st.builds(
    lambda scheme, host, port, rest: f"{scheme}://{host}{port}/{rest}",
    SCHEMES, BUCKET | AZURE | st.just(""), st.sampled_from(["", ":443", ":80", ":8020", ":1"]), st.text(max_size=20),
)  # fmt: skip
ALIASES = LocationAliases.from_prefixes(
    {
        "s3://ap-xyz/": "s3a://bucket/", "s3://ap-xyz/deep": "s3://other/x", "/mnt/lake": "s3://bucket/lake",
        "hdfs:///": "hdfs://NN/", "s3://fuse/": "/mnt/fuse",
    }
)  # fmt: skip


@given(st.text() | URIS | st.builds("/".join, SEGMENTS))
@example("file:///a%2520b")
@example("file:/%2F")
@example("/%")
@example("file:///%")
@example("//a//b")
@example("hdfs://nn:8020/a/../../b")
@example("s3://b//a//")
@example("file://localhost/x")
@example("file:// /x")
@example("/ ")
@example("s3://bucket/key ")
@example("hdfs://a:8020:8020/x")
@example("file:///x%C3%28")
@example("file:///x%ED%A0%80")
@example("/x\ud800\udcff")
@example("file:///a%20")
@example("/a\n ")
@example(" /a")
@example("s3://b/a /")
@example("s3://b /")
@example("hdfs://nn/a /")
@example("hdfs://[::1]:8020/a")
@example("https://a.blob.core.windows.net/c/x%2520y%20")
@example("https://a.blob.core.windows.net/c?sig=x")
@example("https://a.blob.core.windows.net/c/%00")
@example("https://a.blob.core.windows.net/c/%ff")
@example("wasb:///x")
@example("wasb://@443")
@example("wasb://c@h:443/x")
@example("https://443/x")
@example("s3+ddb://b/k?ddbTableName=t")
@example("s3+ddb://b?ddbTableName=t")
@example("s3://ap-xyz/deep/a%20b/..")
@example("/mnt/lake/a%20b")
@example("s3://fuse/a%20b/../c")
def test_canonical_is_idempotent_and_total(text: str) -> None:
    once = canonical_location(text)
    assert canonical_location(once) == once
    aliased = canonical_location(text, ALIASES)
    assert canonical_location(aliased, ALIASES) == canonical_location(once, ALIASES) == canonical_location(aliased) == aliased
    assert all(canonical_location(parent) == parent for parent in parent_locations(text))


@given(st.sampled_from(["s3", "az", "gs", "wasb"]), BUCKET, SEGMENTS)
def test_a_space_at_the_end_of_a_name_is_a_part_of_it(scheme: str, bucket: str, segments: list[str]) -> None:
    key = "/".join(segments)
    spellings = [canonical_location(f"{scheme}://{bucket}/{key}{end}/") for end in ("", " ", "%20", "\t", "  ", " / ")]
    assert len(set(spellings)) == len(spellings)


@given(st.sampled_from(["abfss", "abfs", "wasb", "wasbs", "az", "ABFSS"]), SEGMENTS)
def test_the_forms_of_an_azure_container_are_one(scheme: str, segments: list[str]) -> None:
    key = "/".join(segments)
    assume(key == key.strip(STRIPPED))
    wanted = canonical_location(f"abfss://c@acct.dfs.core.windows.net/{key}")
    for service in ("dfs", "blob"):
        assert canonical_location(f"{scheme}://c@Acct.{service}.core.windows.net/{key}/") == wanted
        if not any(ord(letter) < 32 or ord(letter) == 0x7F or 0xD800 <= ord(letter) <= 0xDFFF for letter in key):
            url = f"https://acct.{service}.core.windows.net:443/c/{quote(key)}"
            assert canonical_location(url) == canonical_location(f"{url}?sv=2024&sig=secret") == wanted
    for other in (f"az://c/{key}", f"abfss://d@acct.dfs.core.windows.net/{key}", f"abfss://c@other.dfs.core.windows.net/{key}"):
        assert canonical_location(other) != wanted
    assert (
        canonical_location(f"abfss://c/{key}") == canonical_location(f"azure://c/{key}") == canonical_location(f"az://c/{key}")
    )


@given(SEGMENTS)
def test_an_alias_leads_to_the_location_that_it_stands_for(segments: list[str]) -> None:
    key = "/".join(segments)
    assume(key == key.strip(STRIPPED) and segments[0] != "deep")
    assert canonical_location(f"s3a://ap-xyz/{key}", ALIASES) == canonical_location(f"s3://bucket/{key}")
    assert canonical_location(f"s3://ap-xyz/deep/{key}", ALIASES) == canonical_location(f"s3://other/x/{key}")
    assert canonical_location(f"s3://ap-xyz/deeper/{key}", ALIASES) == canonical_location(f"s3://bucket/deeper/{key}")
    if all(segments):
        assert canonical_location(f"/mnt/lake/{key}", ALIASES) == canonical_location(f"s3://bucket/lake/{key}")
        assert canonical_location(f"s3://fuse/{key}", ALIASES) == canonical_location(f"/mnt/fuse/{key}")
    for text in (f"s3://ap-xyzz/{key}", f"gs://ap-xyz/{key}", f"/mnt/lakes/{key}", f"hdfs://nn2/{key}"):
        assert canonical_location(text, ALIASES) == canonical_location(text)


def test_aliases_of_roots_and_of_the_locations_themselves() -> None:
    assert canonical_location("s3n://ap-xyz", ALIASES) == "s3://bucket"
    assert canonical_location("hdfs:///", ALIASES) == "hdfs://nn/"
    assert canonical_location("hdfs:/a/../b", ALIASES) == "hdfs://nn/b"


@pytest.mark.parametrize(
    "aliases",
    [
        {"s3://a/": "s3://b/", "s3://b/": "s3://c/"}, {"s3://a/": "s3://b/", "s3://b/x": "s3://c/"}, {"s3://a/": "s3://a/b"},
        {"s3://a/b": "s3://a"}, {"s3://a/": "s3a://a"}, {"s3://a/": "s3://b/", "s3a://a": "s3://c/"}, {"a": "s3://b/"},
        {"s3://b/": "relative/x"},
    ],
)  # fmt: skip
def test_aliases_that_lead_on_or_nowhere_are_refused(aliases: dict[str, str]) -> None:
    with pytest.raises(ValueError):
        LocationAliases.from_prefixes(aliases)


def test_the_parent_locations() -> None:
    assert parent_locations("s3a://b/a//t/") == ["s3://b/a", "s3://b"]
    assert parent_locations("/a/b/../c") == ["file:///a", "file:///"]
    assert parent_locations("hdfs://nn/a") == ["hdfs://nn/"]
    assert parent_locations("s3://b") == parent_locations("relative") == []


@given(SEGMENTS)
def test_the_spellings_of_a_local_location_are_one(segments: list[str]) -> None:
    path = "/" + "/".join(segments)
    encoded = quote(path, errors="surrogatepass")
    spellings = [path, path + "/", "/" + path, path.replace("/", "//"), f"/.{path}", f"/x/..{path}"]
    spellings += [f"file:{encoded}", f"file://{encoded}", f"FILE://{encoded}/", f"file://localhost{encoded}"]
    assert len({canonical_location(spelling) for spelling in spellings}) == 1
    assert local_path(path) == path
    assert local_path(f"file://{encoded}") == path


@given(SEGMENTS, SEGMENTS)
@example(["a"], ["a/"])
@example(["a%20b"], ["a b"])
@example(["A"], ["a"])
def test_two_local_locations_stay_two(segments_of_first: list[str], segments_of_second: list[str]) -> None:
    first, second = ("/" + "/".join(segments) for segments in (segments_of_first, segments_of_second))
    folded = [[part for part in path.split("/") if part] for path in (first, second)]
    assert (canonical_location(first) == canonical_location(second)) == (folded[0] == folded[1])


@given(BUCKET, SEGMENTS, SEGMENTS)
@example("b", ["a%20b"], ["a b"])
@example("b", ["a", ""], ["a"])
@example("b", ["a", "", "b"], ["a", "b"])
@example("b", ["a", "..", "b"], ["b"])
@example("b", ["A"], ["a"])
def test_two_objects_of_a_bucket_stay_two(bucket: str, first: list[str], second: list[str]) -> None:
    keys = ["/".join(segments) for segments in (first, second)]
    assume(all(key == key.strip(STRIPPED) for key in keys))
    canonical = [canonical_location(f"s3://{bucket}/{key}") for key in keys]
    assert (canonical[0] == canonical[1]) == (keys[0].rstrip("/") == keys[1].rstrip("/"))


@given(BUCKET, BUCKET, SEGMENTS)
def test_buckets_and_schemes_stay_apart(first: str, second: str, segments: list[str]) -> None:
    key = "/".join(segments)
    if first != second:
        assert canonical_location(f"s3://{first}/{key}") != canonical_location(f"s3://{second}/{key}")
    assert len({canonical_location(f"{scheme}://{first}/{key}") for scheme in ("s3", "gs", "hdfs", "az")}) == 4
    assert canonical_location(f"/{first}/{key}") != canonical_location(f"s3://{first}/{key}")


@pytest.mark.parametrize(
    ("spellings", "canonical"),
    [
        (["s3://b/k", "s3a://b/k", "s3n://b/k", "S3://b/k/", "s3://b/k//"], "s3://b/k"),
        (["s3://b", "s3://b/", "s3a://b"], "s3://b"),
        (["gs://b/k", "gcs://b/k/"], "gs://b/k"),
        (["hdfs://NN:8020/a/b", "hdfs://nn/a//b/", "hdfs://nn/a/./c/../b"], "hdfs://nn/a/b"),
        (["/a/b", "file:/a/b", "file:///a/b", "file:////a/b", "/a/b/", "/a/./b", "file://localhost/a/b"], "file:///a/b"),
        (["/a b", "file:/a b", "file:///a%20b"], "file:///a b"),
        (["/a%20b", "file:///a%2520b"], "file:///a%2520b"),
        (["s3://b/k", "s3+ddb://b/k?ddbTableName=t", "s3+ddb://b/k"], "s3://b/k"),
        (["/a/b", "file-object-store:///a/b"], "file:///a/b"),
        (["abfss://c@acct.dfs.core.windows.net/x", "abfss://c@ACCT.dfs.core.windows.net/x/"], "abfss://c@acct.dfs.core.windows.net/x"),
    ],
)  # fmt: skip
def test_known_spellings(spellings: list[str], canonical: str) -> None:
    assert {canonical_location(spelling) for spelling in spellings} == {canonical}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("s3://b/a//b", "s3://b/a/b"),
        ("s3://b/k", "s3://B/k"),
        ("s3://b/K", "s3://b/k"),
        ("hdfs://nn:9000/a", "hdfs://nn:8020/a"),
        ("hdfs://nn1/a", "hdfs://nn2/a"),
        ("file:///a", "file://host/a"),
        ("/a", "a"),
        ("gs://b/k", "s3://b/k"),
        ("abfss://c1@acct.dfs.core.windows.net/x", "abfss://c2@acct.dfs.core.windows.net/x"),
        ("hdfs://u1@nn/a b", "hdfs://nn/a%20b"),
        ("s3://b/ k", "s3://b/k"),
        ("s3://b/k?ddbTableName=t", "s3://b/k"),
        ("wasb:///x", "abfss:///x"),
        ("abfss://c@acct.dfs.core.windows.net/x", "abfss://c@acct.dfs.core.chinacloudapi.cn/x"),
        ("abfss://c@acct.dfs.core.windows.net:8443/x", "abfss://c@acct.dfs.core.windows.net/x"),
        ("/a ", "/a"),
        ("/a\u3000", "/a"),
        ("file:///x%C3(", "file:///x%C4("),
        ("file:///x%C3(", "file:///x%EF%BF%BD("),
    ],
)
def test_known_differences(first: str, second: str) -> None:
    assert canonical_location(first) != canonical_location(second)


@given(st.text())
def test_what_is_no_location_stays_as_it_is(text: str) -> None:
    if not is_location(text.strip(STRIPPED)):
        assert canonical_location(text) == text.strip(STRIPPED)
    assert not is_location("")
    assert not is_location(None)
    assert not is_location("relative/path")


@pytest.mark.parametrize(
    ("written", "opened"),
    [
        ("s3a://b/a b%20#?é/t.lance/", "s3://b/a b%20#?é/t.lance/"), ("S3N://Bucket/t", "s3://Bucket/t"), ("s3://b/t", "s3://b/t"),
        ("s3+ddb://b/t?ddbTableName=locks", "s3+ddb://b/t?ddbTableName=locks"), ("gcs://b/t", "gs://b/t"), ("gs://b/t", "gs://b/t"),
        ("azure://c/t", "az://c/t"), ("az://c/t", "az://c/t"), ("abfs://c/t", "az://c/t"),
        ("abfs://c@acct.dfs.core.windows.net/t", "abfss://c@acct.dfs.core.windows.net/t"),
        ("wasbs://c@ACCT.blob.core.windows.net/T", "abfss://c@acct.dfs.core.windows.net/T"),
        ("https://acct.blob.core.windows.net/c/a%20b?sig=x", "abfss://c@acct.dfs.core.windows.net/a%20b"),
        ("abfss://c@acct.example.com/t", "abfss://c@acct.example.com/t"), ("https://example.com/c/t", "https://example.com/c/t"),
        ("file:/mnt/a%20b/", "/mnt/a b"), ("file://localhost/t", "/t"), ("/t//x/../y", "/t/y"), ("file://other/t", "file://other/t"),
        ("hdfs://nn:8020/t", "hdfs://nn:8020/t"), ("s3a", "s3a"), ("relative/place", "relative/place"), ("", ""),
    ],
)  # fmt: skip
def test_lance_opens_every_spelling_under_a_scheme_that_it_has(written: str, opened: str) -> None:
    assert to_lance_uri(written) == opened


@given(URIS)
def test_what_lance_opens_is_the_same_location(location: str) -> None:
    assume(not location.lower().startswith("https"))
    assert canonical_location(to_lance_uri(location)) == canonical_location(location)
    assert to_lance_uri(to_lance_uri(location)) == to_lance_uri(location)


@given(SEGMENTS)
def test_an_encoded_key_is_read_by_lance_as_it_is_named(segments: list[str]) -> None:
    """With no characters that Lance would read otherwise, and with one decoding as Lance does it, it is the key again."""
    encoded = encode_key("/".join(segments))
    assume(not any("\ud800" <= character <= "\udfff" for character in encoded))
    assume(encoded == encoded.strip())
    assert not is_ambiguous(f"s3://bucket/{encoded}")
    assert unquote(encoded) == "/".join(segments)
