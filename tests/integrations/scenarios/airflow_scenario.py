"""A DAG of Airflow plans, syncs and waits; its tasks return what the service did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

os.environ |= {
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__DAGS_FOLDER": str(Path(os.environ["AIRFLOW_HOME"]) / "dags"),
    "AIRFLOW_CONN_FEDERATOR_DEFAULT": json.dumps(
        {"conn_type": "http", "host": os.environ["FEDERATOR_URL"], "password": os.environ["FEDERATOR_TOKEN"]}
    ),
}
_DAG = """
from datetime import timedelta
from airflow.sdk import DAG
from federator.integrations.airflow import FederatorFreshnessSensor, FederatorPlanOperator, FederatorSyncOperator

with DAG("nightly", schedule=None) as dag:
    plan = FederatorPlanOperator(task_id="plan", mirrors=["to-glue"])
    sync = FederatorSyncOperator(task_id="sync", mirrors=["to-glue"], run_timeout=600)
    fresh = FederatorFreshnessSensor(task_id="fresh", sources=["hive", "aws"], max_age=timedelta(hours=1), poke_interval=1, timeout=60)
    refused = FederatorPlanOperator(task_id="refused", accepted=["held"])
    plan >> sync >> fresh >> refused
"""


def main() -> None:
    dags = Path(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
    dags.mkdir(parents=True)
    (dags / "nightly.py").write_text(_DAG, encoding="utf-8")
    airflow = str(Path(sys.executable).with_name("airflow"))
    for command in (["db", "migrate"], ["dags", "reserialize"]):
        subprocess.run([airflow, *command], check=True, capture_output=True)
    tested = subprocess.run([airflow, "dags", "test", "nightly"], check=False, capture_output=True, text=True)
    import sqlite3

    with sqlite3.connect(Path(os.environ["AIRFLOW_HOME"]) / "airflow.db") as database:
        states = dict(database.execute("SELECT task_id, state FROM task_instance"))
        returned = dict(database.execute("SELECT task_id, value FROM xcom WHERE key = 'return_value'"))
    expected = {"plan": "success", "sync": "success", "fresh": "success", "refused": "failed"}
    assert states == expected, (states, tested.stdout[-3000:], tested.stderr[-3000:])
    plan, sync = (json.loads(returned[name]) for name in ("plan", "sync"))
    assert plan["plans"][0]["changes"] == {"create_namespace": 1, "declare_table": 3}, plan
    assert (sync["state"], sync["done"]) == ("ok", 4), sync
    assert "RunNotAccepted" in tested.stdout + tested.stderr


main()
