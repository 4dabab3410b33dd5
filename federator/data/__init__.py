"""What Lance itself answers at a location: rows, versions, tags, branches, indices, columns; and writes.

Functions over a ``Place`` that know nothing of HTTP, the index or catalogs. They run in processes that can be killed
(``federator.data.pool``), never in the one that serves.
"""

from federator.data.limits import DataLimits
from federator.data.place import Place
from federator.data.pool import DataPool

__all__ = ["DataLimits", "DataPool", "Place"]
