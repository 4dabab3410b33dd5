"""The proof of mirroring: random worlds of catalogs, mirrors, users and faults, judged by an oracle that knows the truth.

``python -m tests.prove --runs 10000``; docs/explanation/proof.md says what is proven and what is not.
"""
