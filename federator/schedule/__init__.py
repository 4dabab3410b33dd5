"""The worker: one process at a time holds the lease ``scheduler``, runs the scheduled jobs and Spark, and obeys requests.

Everything that is to run is a row of the table ``request``, whoever asked: the API, the command line or the schedule. The worker
runs them one after the other through one warm Federator.
"""

from federator.schedule.jobs import Job, configured, run_job
from federator.schedule.worker import Worker

__all__ = ["Job", "Worker", "configured", "run_job"]
