"""Past verification states over HTTP: at a time, and compared."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from federator.store import Index, verifications
from tests.unit.api.conftest import Api

LOCATION = "s3://lake/sales/t05.lance"
COLUMNS = '[{"name":"id","type":"int64","nullable":true}]'


def record_state(index: Index, state: str, at: float) -> None:
    nothing = dict.fromkeys(("version", "rows", "fragments", "size", "indices", "format", "changed_at"))
    schema = COLUMNS if state == "valid" else None
    row = {
        "canonical": LOCATION,
        "location": LOCATION,
        "state": state,
        "message": f"{state}!",
        "schema": schema,
        "fingerprint": schema,
    }
    with index.write() as connection:
        verifications.save_verifications(
            connection, [{**nothing, **row, "checked_at": at, "checked_through": "lake", "access": ""}]
        )


def test_past_states_and_their_differences(api: Api, index: Index) -> None:
    # The sources were published before this.
    started_at = time.time()
    time.sleep(0.03)
    moments = [started_at + 0.01 * number for number in range(3)]
    for at, state in zip(moments, ("valid", "missing", "corrupt"), strict=True):
        record_state(index, state, at)
    times = [datetime.fromtimestamp(at + 0.001, UTC).isoformat() for at in moments]

    def location(**params: str) -> dict[str, Any]:
        return dict(api.json("/api/v1/datasets/s3%3A%2F%2Flake%2Fsales%2Ft05.lance", params=params))

    assert [location(as_of=at)["state"] for at in times] == ["valid", "missing", "corrupt"]
    first = location(as_of=times[0])
    assert (first["message"], first["schema"][0]["name"]) == ("valid!", "id")
    assert location()["state"] == "corrupt"
    shown = api.json("/api/v1/tables/lake%24sales%24t05", params={"as_of": times[1]})["dataset"]
    assert (shown["state"], shown["message"], shown["schema"]) == ("missing", "missing!", None)
    listed = api.json("/api/v1/datasets", params={"as_of": times[1], "state": "missing"})["datasets"]
    assert [(result["location"], result["state"]) for result in listed] == [(LOCATION, "missing")]
    assert api.get("/api/v1/datasets", params={"as_of": times[1], "state": "odd"}).status_code == 400
    (result,) = api.json("/api/v1/diff", params={"from": times[0], "to": times[2]})["differences"]
    assert (result["how"], result["kind"], result["id"], result["revision"], result["by"]) == (
        "changed",
        "dataset",
        LOCATION,
        None,
        None,
    )
    assert result["fields"] == [{"field": "state", "before": "valid", "after": "corrupt"}]
