"""Fingerprints find every text with a known secret, and say too little to find the secret."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federator.pipeline.secret_fingerprints import SecretFingerprints
from federator.runtime import redaction
from federator.runtime.redaction import has_known_secret, register_secret

SECRETS = ["swordfish", "pä$$wört", 'quo"ted secret', "s3cr3t", "Ünïcode😀secret", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"]
TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)


@pytest.fixture(scope="module", autouse=True)
def _registered() -> None:
    for secret in SECRETS:
        register_secret(secret)


@given(st.lists(st.tuples(TEXTS, st.sampled_from(["", *SECRETS]), TEXTS), max_size=20))
def test_every_text_with_a_secret_is_found(parts: list[tuple[str, str, str]]) -> None:
    texts = ["".join(part) for part in parts]
    suspects = SecretFingerprints.of_known_secrets().find_suspects(texts)
    assert {number for number, text in enumerate(texts) if has_known_secret(text)} <= set(suspects)
    assert suspects == sorted(set(suspects))


def test_few_other_texts_are_found() -> None:
    texts = [f'{{"team": "team-{number}", "revision": "{number * 7919}"}}' for number in range(20_000)]
    suspects = SecretFingerprints.of_known_secrets().find_suspects([*texts, "has swordfish in it"])
    assert suspects[-1] == len(texts)
    assert len(suspects) < len(texts) / 100


def test_what_is_sent_has_no_part_of_a_secret_and_differs_by_job() -> None:
    sent = [SecretFingerprints.of_known_secrets() for _ in range(2)]
    assert sent[0] != sent[1]
    assert all(value < 2**22 for value in sent[0].values)
    for secret in SECRETS:
        assert secret[:4].encode() not in pickle.dumps(sent[0])


def test_without_secrets_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_complete_secrets", ())
    assert SecretFingerprints.of_known_secrets().find_suspects(["", "text"]) == []
