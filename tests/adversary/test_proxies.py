"""The proxies themselves: a truthful one changes nothing, and each action does to a real response what its text says."""

from __future__ import annotations

import http.client
import json
import socket
from pathlib import Path

import pytest
import requests

from federator.connector import ServiceUnavailable
from federator_connectors import hive2
from tests.adversary.http_proxy import HttpProxy
from tests.adversary.lies import (
    EACH,
    Action,
    Cut,
    Drip,
    Edit,
    Elsewhere,
    Hang,
    Lie,
    Lose,
    Op,
    Raise,
    Refuse,
    Repeat,
    Reset,
    Send,
    Stale,
)
from tests.adversary.thrift_proxy import STRING, Items, Message, ThriftProxy, Value, decode, encode
from tests.fixtures.hive import Metastore
from tests.stubs.unity.server import API, UnityStub

_CATALOGS = f"{API}/catalogs"


def _names(proxy: HttpProxy) -> list[str]:
    response = requests.get(f"{proxy.url}{_CATALOGS}", timeout=30)
    return [row["name"] for row in response.json()["catalogs"]]


def test_http_edits_and_inventions(unity_stub: UnityStub) -> None:
    with HttpProxy(unity_stub.url) as proxy:
        assert _names(proxy) == ["main"]
        proxy.lie(Lie("GET .*/catalogs", Edit(("catalogs",), Op.DOUBLE)))
        assert _names(proxy) == ["main", "main"]
        proxy.lie(Lie("GET .*/catalogs", Edit(("catalogs", EACH, "name"), Op.UPPER), first=2, times=1))
        assert [_names(proxy), _names(proxy), _names(proxy)] == [["main"], ["MAIN"], ["main"]]
        assert proxy.calls == [f"GET {_CATALOGS}"] * 3
        assert proxy.met == 1
        proxy.lie(Lie(".*", Send(b"<html>", content_type="text/html", retry_after="3", status=503)))
        response = requests.get(f"{proxy.url}{_CATALOGS}", timeout=30)
        assert (response.status_code, response.text, response.headers["Retry-After"]) == (503, "<html>", "3")
        unity_stub.world.create_catalog({"name": "other"}, None)
        proxy.lie(Lie(".*", Stale()))
        assert _names(proxy) == ["main"]
        proxy.truthful()
        assert _names(proxy) == ["main", "other"]


@pytest.mark.parametrize("action", [Refuse(), Reset(), Cut(), Hang(), Lose()])
def test_http_responses_that_do_not_arrive(action: Action, unity_stub: UnityStub) -> None:
    with HttpProxy(unity_stub.url) as proxy:
        proxy.lie(Lie(".*", action))
        with pytest.raises(requests.RequestException):
            requests.get(f"{proxy.url}{_CATALOGS}", timeout=0.5 if isinstance(action, Hang) else 30)
        forwarded = not isinstance(action, Refuse | Hang)
        assert [line.partition(" ")[0] for line in unity_stub.seen] == ["GET"] * forwarded
        if isinstance(action, Refuse):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", proxy.port), timeout=1)
        proxy.truthful()
        assert _names(proxy) == ["main"]


@pytest.mark.parametrize("text", ["Host: x\r\nContent-Le", "Host: x\r\nContent-Length: 2\r\n\r\n{"], ids=["headers", "body"])
def test_http_a_write_that_the_client_cuts_is_not_forwarded(text: str, unity_stub: UnityStub) -> None:
    with HttpProxy(unity_stub.url) as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=30) as client:
            client.sendall(f"POST {_CATALOGS} HTTP/1.1\r\n{text}".encode())
            client.shutdown(socket.SHUT_WR)
            with pytest.raises(ConnectionResetError):
                client.recv(1)
        assert _names(proxy) == ["main"]
        assert [line.partition(" ")[0] for line in unity_stub.seen] == ["GET"]


def test_http_writes_that_are_lost_or_repeated(unity_stub: UnityStub) -> None:
    with HttpProxy(unity_stub.url) as proxy:
        proxy.lie(Lie("POST .*", Lose(), times=1), Lie("POST .*", Repeat()))
        with pytest.raises(requests.ConnectionError):
            requests.post(f"{proxy.url}{_CATALOGS}", json={"name": "lost"}, timeout=30)
        response = requests.post(f"{proxy.url}{_CATALOGS}", json={"name": "again"}, timeout=30)
        assert response.json()["error_code"] == "CATALOG_ALREADY_EXISTS"
        assert sorted(unity_stub.world.catalogs) == ["again", "lost", "main"]


def test_http_of_another_server(unity_stub: UnityStub) -> None:
    with UnityStub() as other, HttpProxy(unity_stub.url) as proxy:
        proxy.lie(Lie(".*", Elsewhere(other.url)))
        assert _names(proxy) == []


def test_http_byte_by_byte(unity_stub: UnityStub) -> None:
    with HttpProxy(unity_stub.url) as proxy:
        proxy.lie(Lie(".*", Drip(0.001)))
        client = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=5)
        client.request("GET", _CATALOGS)
        assert json.loads(client.getresponse().read())["catalogs"][0]["name"] == "main"
        client.close()


def test_thrift_messages_survive_the_codec() -> None:
    message = Message(1, "m", 7, {1: Value(15, Items(STRING, [b"a", b""])), 2: Value(13, Items((11, 8), [(b"k", 3)]))})
    data = encode(message)
    chunks = iter([data])
    rest = next(chunks)

    def read(count: int) -> bytes:
        nonlocal rest
        taken, rest = rest[:count], rest[count:]
        return taken

    assert decode(read) == message
    assert rest == b""


def test_thrift_lies(hive2_uri: str, tmp_path: Path) -> None:
    metastore = Metastore(hive2_uri, 1, (), tmp_path, 2)
    database = metastore.database()
    with ThriftProxy(metastore.uri) as proxy, metastore.open(uri=proxy.uri, **{"client.timeout": "1"}) as catalog:
        assert database[-1] in catalog.list_namespaces(())
        assert "get_databases" in proxy.calls
        proxy.lie(Lie("get_databases", Edit((0,), Op.CLEAR)))
        assert catalog.list_namespaces(()) == []
        proxy.lie(Lie("get_databases", Edit((0,), Op.UPPER)))
        # The connector folds names, so that the lie changes nothing.
        assert database[-1] in catalog.list_namespaces(())
        assert proxy.met
        proxy.lie(Lie("get_database", Raise(1)))
        assert catalog.observe((*database, "t")).is_absent
        proxy.truthful()
        assert database[-1] in catalog.list_namespaces(())


@pytest.mark.parametrize(
    "action",
    [Refuse(), Reset(), Cut(), Hang(), Lose(), Send(b"HTTP/1.1 400 Bad Request\r\n\r\n")],
    ids=lambda action: type(action).__name__,
)
def test_thrift_responses_that_do_not_arrive(action: Action, hive2_uri: str) -> None:
    with ThriftProxy(hive2_uri) as proxy:
        opened = hive2.CONNECTOR.open("lake", hive2.CONNECTOR.parse_settings({"uri": proxy.uri, "client.timeout": "1"}))
        with opened as catalog:
            assert "default" in catalog.list_namespaces(())
            proxy.lie(Lie("get_databases", action))
            with pytest.raises(ServiceUnavailable):
                catalog.list_namespaces(())
            assert proxy.met
            proxy.truthful()
            assert "default" in catalog.list_namespaces(())
