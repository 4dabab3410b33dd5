"""How long vended credentials are kept, and how often they are requested."""

from __future__ import annotations

import threading
import time

import pytest

from federator.vending import VendedCredentials, cache


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_credentials_are_kept_until_shortly_before_they_expire() -> None:
    clock, calls = Clock(), 0
    credential_cache = cache.CredentialCache(now=clock)

    def issue(lifetime: float = 3600.0) -> VendedCredentials:
        nonlocal calls
        calls += 1
        return VendedCredentials({"n": str(calls)}, clock.now, clock.now + lifetime, "me", "sts")

    def got(key: str = "a") -> str:
        return credential_cache.get(key, issue).options["n"]

    assert [got(), got(), got("b"), got()] == ["1", "1", "2", "1"]
    clock.now += 3299
    assert got() == "1"
    clock.now += 2
    assert got() == "3", "less than five minutes are left"
    clock.now -= 10
    assert got() == "4", "the clock was set back"
    assert credential_cache.get("short", lambda: issue(8)).options["n"] == "5"
    clock.now += 7
    assert credential_cache.get("short", lambda: issue(8)).options["n"] == "6"


def test_an_error_is_not_kept() -> None:
    credential_cache = cache.CredentialCache()

    def fail() -> VendedCredentials:
        raise ValueError

    with pytest.raises(ValueError):
        credential_cache.get("a", fail)
    assert credential_cache.get("a", lambda: VendedCredentials({}, time.time(), time.time() + 100, "me", "sts")).issuer == "me"


def test_concurrent_requests_cause_one_call() -> None:
    kept, calls, results = cache.CredentialCache(), [], []

    def issue() -> VendedCredentials:
        calls.append(1)
        time.sleep(0.05)
        return VendedCredentials({}, time.time(), time.time() + 100, "me", "sts")

    threads = [threading.Thread(target=lambda: results.append(kept.get("a", issue))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(calls), len(results)) == (1, 8)


def test_one_error_is_that_of_all_who_wait_for_it() -> None:
    """An issuer that does not respond would otherwise be called by one after the other."""
    kept, calls, errors = cache.CredentialCache(), [], []
    waiting = threading.Barrier(9)

    def fail() -> VendedCredentials:
        calls.append(1)
        time.sleep(0.5)
        raise ValueError("no response")

    def get() -> None:
        waiting.wait()
        try:
            kept.get("a", fail)
        except ValueError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=get) for _ in range(8)]
    for thread in threads:
        thread.start()
    waiting.wait()
    for thread in threads:
        thread.join()
    assert (len(calls), errors) == (1, ["no response"] * 8)
    assert kept.get("b", lambda: VendedCredentials({}, time.time(), time.time() + 100, "me", "sts")).issuer == "me"


def test_the_number_of_entries_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_MAX_ENTRIES", 3)
    credential_cache = cache.CredentialCache()
    for n in range(10):
        credential_cache.get(n, lambda: VendedCredentials({}, time.time(), time.time() + 100, "me", "sts"))
    assert len(credential_cache._entries) == 3
