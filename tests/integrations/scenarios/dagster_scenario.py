"""Dagster plans, syncs and waits; a sensor starts the job once for each new revision."""

from __future__ import annotations

import os
from datetime import timedelta

import dagster

from federator.integrations.dagster import FederatorResource, build_freshness_sensor
from federator.integrations.runs import RunNotAccepted


@dagster.op
def mirror_tables(federator: FederatorResource) -> dict:  # type: ignore[type-arg]
    planned = federator.plan(["to-glue"])
    synced = federator.sync(["to-glue"])
    federator.wait_for_freshness(["hive", "aws"], max_age=timedelta(hours=1))
    return {"planned": planned, "synced": synced}


@dagster.job
def nightly() -> None:
    mirror_tables()


def main() -> None:
    resource = FederatorResource(url=os.environ["FEDERATOR_URL"], token=os.environ["FEDERATOR_TOKEN"], timeout=600)
    result = nightly.execute_in_process(resources={"federator": resource})
    assert result.success
    output = result.output_for_node("mirror_tables")
    (plan,) = output["planned"]["plans"]
    assert plan["changes"] == {"create_namespace": 1, "declare_table": 3}, plan
    assert (output["synced"]["state"], output["synced"]["done"]) == ("ok", 4), output["synced"]
    sensor = build_freshness_sensor(job=nightly, sources=["hive"])
    with dagster.build_sensor_context(resources={"federator": resource}) as context:
        first, second = (sensor.evaluate_tick(context).run_requests for _ in range(2))
    assert first is not None
    assert second is not None
    assert [request.run_key for request in first] == [request.run_key for request in second]
    assert first[0].run_key.startswith("hive@")
    message = ""
    try:
        resource.sync(["to-glue"], accepted=())
    except RunNotAccepted as error:
        message = str(error)
    assert "(sync) is ok" in message, message


main()
