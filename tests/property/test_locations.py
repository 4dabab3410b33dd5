"""Locations: one text per place, and never one text for two places."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from federator.model import canonical_location, is_location, local_path

# What readers of URIs strip from both ends.
STRIPPED = "".join(map(chr, range(0x21)))
SEGMENT = st.text(min_size=1, max_size=12).filter(lambda text: "/" not in text and text not in (".", ".."))
PLAIN = st.text(alphabet="abcXYZ019_-. é😀%#?$", min_size=1, max_size=12).filter(lambda text: text not in (".", ".."))
SEGMENTS = st.lists(SEGMENT | PLAIN, min_size=1, max_size=4)
BUCKET = st.from_regex(r"[a-z0-9][a-z0-9.-]{1,10}[a-z0-9]", fullmatch=True)
SCHEMES = st.sampled_from(["s3", "s3a", "gs", "hdfs", "abfss", "file", "S3", "http", "az"])
URIS = st.builds(lambda scheme, host, rest: f"{scheme}://{host}/{rest}", SCHEMES, BUCKET | st.just(""), st.text(max_size=20))


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
def test_canonical_is_idempotent_and_total(text: str) -> None:
    once = canonical_location(text)
    assert canonical_location(once) == once


@given(SEGMENTS)
def test_the_spellings_of_a_local_place_are_one(segments: list[str]) -> None:
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
def test_two_local_places_stay_two(one: list[str], other: list[str]) -> None:
    first, second = ("/" + "/".join(segments) for segments in (one, other))
    folded = [[part for part in path.split("/") if part] for path in (first, second)]
    assert (canonical_location(first) == canonical_location(second)) == (folded[0] == folded[1])


@given(BUCKET, SEGMENTS, SEGMENTS)
@example("b", ["a%20b"], ["a b"])
@example("b", ["a", ""], ["a"])
@example("b", ["a", "", "b"], ["a", "b"])
@example("b", ["a", "..", "b"], ["b"])
@example("b", ["A"], ["a"])
def test_two_objects_of_a_bucket_stay_two(bucket: str, one: list[str], other: list[str]) -> None:
    keys = ["/".join(segments) for segments in (one, other)]
    assume(all(key == key.strip(STRIPPED) for key in keys))
    canonical = [canonical_location(f"s3://{bucket}/{key}") for key in keys]
    assert (canonical[0] == canonical[1]) == (keys[0].rstrip("/") == keys[1].rstrip("/"))


@given(BUCKET, BUCKET, SEGMENTS)
def test_buckets_and_schemes_stay_apart(one: str, other: str, segments: list[str]) -> None:
    key = "/".join(segments)
    if one != other:
        assert canonical_location(f"s3://{one}/{key}") != canonical_location(f"s3://{other}/{key}")
    assert len({canonical_location(f"{scheme}://{one}/{key}") for scheme in ("s3", "gs", "hdfs", "az")}) == 4
    assert canonical_location(f"/{one}/{key}") != canonical_location(f"s3://{one}/{key}")


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
        (["abfss://c@acct.dfs.core.windows.net/x", "abfss://c@ACCT.dfs.core.windows.net/x/"], "abfss://c@acct.dfs.core.windows.net/x"),
    ],
)  # fmt: skip
def test_known_spellings(spellings: list[str], canonical: str) -> None:
    assert {canonical_location(spelling) for spelling in spellings} == {canonical}


@pytest.mark.parametrize(
    ("one", "other"),
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
        ("/a ", "/a"),
        ("/a\u3000", "/a"),
        ("file:///x%C3(", "file:///x%C4("),
        ("file:///x%C3(", "file:///x%EF%BF%BD("),
    ],
)
def test_known_differences(one: str, other: str) -> None:
    assert canonical_location(one) != canonical_location(other)


@given(st.text())
def test_what_is_no_location_stays_as_it_is(text: str) -> None:
    if not is_location(text.strip(STRIPPED)):
        assert canonical_location(text) == text.strip(STRIPPED)
    assert not is_location("")
    assert not is_location(None)
    assert not is_location("relative/path")
