"""How places had been found, over HTTP: as of a time, and compared."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from federator.index import Index, datasets
from tests.api.conftest import Api

PLACE = "s3://lake/sales/t05.lance"
COLUMNS = '[{"name":"id","type":"int64","nullable":true}]'


def look(index: Index, state: str, at: float) -> None:
    nothing = dict.fromkeys(("version", "rows", "fragments", "size", "indices", "format", "changed_at"))
    schema = COLUMNS if state == "valid" else None
    row = {
        "canonical": PLACE,
        "location": PLACE,
        "state": state,
        "message": f"{state}!",
        "schema": schema,
        "fingerprint": schema,
    }
    with index.write() as connection:
        datasets.save(connection, [{**nothing, **row, "checked_at": at, "checked_through": "lake"}])


def test_states_of_then_and_what_has_changed(api: Api, index: Index) -> None:
    # The sources were published before this.
    began = time.time()
    time.sleep(0.03)
    moments = [began + 0.01 * number for number in range(3)]
    for at, state in zip(moments, ("valid", "missing", "corrupt"), strict=True):
        look(index, state, at)
    times = [datetime.fromtimestamp(at + 0.001, UTC).isoformat() for at in moments]

    def place(**asked: str) -> dict[str, Any]:
        return dict(api.json("/api/v1/datasets/s3%3A%2F%2Flake%2Fsales%2Ft05.lance", params=asked))

    assert [place(as_of=at)["state"] for at in times] == ["valid", "missing", "corrupt"]
    first = place(as_of=times[0])
    assert (first["message"], first["schema"][0]["name"]) == ("valid!", "id")
    assert place()["state"] == "corrupt"
    shown = api.json("/api/v1/tables/lake%24sales%24t05", params={"as_of": times[1]})["dataset"]
    assert (shown["state"], shown["message"], shown["schema"]) == ("missing", "missing!", None)
    listed = api.json("/api/v1/datasets", params={"as_of": times[1], "state": "missing"})["datasets"]
    assert [(found["location"], found["state"]) for found in listed] == [(PLACE, "missing")]
    assert api.get("/api/v1/datasets", params={"as_of": times[1], "state": "odd"}).status_code == 400
    (found,) = api.json("/api/v1/diff", params={"from": times[0], "to": times[2]})["differences"]
    assert (found["how"], found["kind"], found["id"], found["revision"], found["by"]) == (
        "changed",
        "dataset",
        PLACE,
        None,
        None,
    )
    assert found["fields"] == [{"field": "state", "before": "valid", "after": "corrupt"}]
