"""The session policy of one table: what it allows, what it never does, and locations for which there is none."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from federator.connector import InvalidInput, Unsupported
from federator.vending import Access
from federator.vending.locations import S3_SCHEMES, TablePrefix, has_scheme, parse_prefix
from federator.vending.s3_policy import MAX_POLICY_LENGTH, build_session_policy
from tests.fixtures.enforcing_s3 import allows

_KEYS = st.text(st.sampled_from("ab*?$/{}.é漢 "), min_size=1, max_size=12)


def policy(location: str, access: Access = Access.READ) -> dict[str, object]:
    parsed: dict[str, object] = json.loads(build_session_policy(parse_prefix(location), access))
    return parsed


def test_reading_allows_the_objects_of_the_table_and_listing_them() -> None:
    assert policy("s3a://lake/sales/orders.lance/")["Statement"] == [
        {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": "arn:aws:s3:::lake/sales/orders.lance/*"},
        {
            "Effect": "Allow", "Action": "s3:ListBucket", "Resource": "arn:aws:s3:::lake",
            "Condition": {"StringLike": {"s3:prefix": "sales/orders.lance/*"}},
        },
    ]  # fmt: skip


@pytest.mark.parametrize("access", list(Access))
def test_no_neighbour_is_allowed_whatever_the_action(access: Access) -> None:
    parsed, table = policy("s3://lake/a.lance", access), "arn:aws:s3:::lake/a.lance"
    changes = ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")
    assert allows(parsed, "s3:GetObject", f"{table}/x", None)
    assert [allows(parsed, action, f"{table}/x", None) for action in changes] == [access is Access.WRITE] * 3
    for action in ("s3:GetObject", *changes, "s3:PutBucketPolicy", "s3:GetObjectAcl"):
        for key in ("a.lance", "a.lance2/x", "b.lance/x", "a_lance/x"):
            assert not allows(parsed, action, f"arn:aws:s3:::lake/{key}", None)
        assert not allows(parsed, action, "arn:aws:s3:::lakes/a.lance/x", None)
    for prefix in (None, "", "a", "a.lance", "a.lance2/", "b.lance/"):
        assert not allows(parsed, "s3:ListBucket", "arn:aws:s3:::lake", prefix)
    assert allows(parsed, "s3:ListBucket", "arn:aws:s3:::lake", "a.lance/_versions/")


@given(_KEYS, _KEYS)
@example("$*{", "a")
def test_characters_of_patterns_are_literal(key: str, other: str) -> None:
    try:
        prefix = parse_prefix(f"s3://lake/{key}")
    except InvalidInput:
        return
    text = build_session_policy(prefix, Access.READ)
    assert text.isascii(), "STS accepts Latin-1 only"
    assert allows(json.loads(text), "s3:GetObject", f"arn:aws:s3:::lake/{prefix.key}/x", None)
    if not f"{other}/x".startswith(f"{prefix.key}/"):
        assert not allows(json.loads(text), "s3:GetObject", f"arn:aws:s3:::lake/{other}/x", None)


@pytest.mark.parametrize(
    ("location", "error"),
    [
        ("s3://lake", InvalidInput), ("s3://lake/", InvalidInput), ("s3://lake//x", InvalidInput), ("s3://lake/a//b", InvalidInput),
        ("s3://lake/../x", InvalidInput), ("s3://lake/a/.", InvalidInput), ("s3://lake/a%2Fb", InvalidInput),
        ("s3://lake/a?b", InvalidInput), ("s3://lake/a#b", InvalidInput), ("s3://lake/a\\b", InvalidInput),
        ("s3://lake/a\nb", InvalidInput), ("s3://*/x", InvalidInput), ("s3://key:secret@lake/x", InvalidInput),
        ("s3://lake--use1-az4--x-s3/t", Unsupported), ("s3+ddb://lake/t?ddbTableName=locks", Unsupported),
    ],
)  # fmt: skip
def test_there_is_no_policy_for_what_is_not_one_table(location: str, error: type[Exception]) -> None:
    assert has_scheme(location, S3_SCHEMES)
    with pytest.raises(error) as caught:
        parse_prefix(location)
    assert "secret" not in str(caught.value)


def test_a_policy_has_at_most_the_length_that_sts_accepts() -> None:
    longest = max(length for length in range(1, 1000) if len(_unchecked("a" * length)) <= MAX_POLICY_LENGTH)
    assert longest > 700
    assert len(build_session_policy(TablePrefix("lake", "a" * longest), Access.WRITE)) <= MAX_POLICY_LENGTH
    with pytest.raises(InvalidInput, match="characters"):
        build_session_policy(TablePrefix("lake", "a" * (longest + 1)), Access.WRITE)


def _unchecked(key: str) -> str:
    short = build_session_policy(TablePrefix("lake", "k"), Access.WRITE)
    return short.replace("lake/k/*", f"lake/{key}/*").replace('"k/*"', f'"{key}/*"')


def test_another_partition_and_a_key() -> None:
    key = "arn:aws-cn:kms:cn-north-1:1:key/k"
    text = build_session_policy(TablePrefix("lake", "t"), Access.READ, partition="aws-cn", kms_key=key)
    assert "arn:aws-cn:s3:::lake/t/*" in text
    assert json.loads(text)["Statement"][2] == {"Effect": "Allow", "Action": ["kms:Decrypt"], "Resource": key}
    assert "kms:GenerateDataKey" in build_session_policy(TablePrefix("lake", "t"), Access.WRITE, kms_key=key)
