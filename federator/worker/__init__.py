"""The worker: the process with the lease ``scheduler`` runs scheduled jobs, requests and Spark.

Every run starts from a row of the table ``request``, which the API, the command line or a job has added. The worker executes
requests one after the other through one warm Federator.
"""

from federator.worker.jobs import Job, configured_jobs, queue_job
from federator.worker.worker import Worker

__all__ = ["Job", "Worker", "configured_jobs", "queue_job"]
