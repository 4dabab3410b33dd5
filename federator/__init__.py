"""Lance Federator: one service that knows every Lance table of a company.

The data's way through this package, folder by folder: ``connector`` (what a catalog can do) → ``pipeline`` (crawl, stage,
normalise, verify, diff on Spark) → ``index`` (revisions in SQL) → ``planning`` (what should change) → ``apply`` (the journal
and the writes) → ``audit``. ``sync`` is that way as one function.
"""

__version__ = "0.1.0"
