"""Operations on a table's data with pylance: rows, versions, tags, branches, indices, columns; and writes.

They are functions over a ``TableHandle``, independent of HTTP, the index and catalogs. They run in child processes that can be
killed (``federator.data.process_pool``), never in the server's process.
"""

from federator.data.limits import DataLimits
from federator.data.process_pool import PrincipalPool, TableProcessPool, run_inspection
from federator.data.table_handle import TableHandle

__all__ = ["DataLimits", "PrincipalPool", "TableHandle", "TableProcessPool", "run_inspection"]
