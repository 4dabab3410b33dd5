"""The contract suite against a live catalog: ``federator conformance``.

``target`` prepares a run and removes what it made, and ``scope`` confines its writes. ``suite`` binds the contract's fixtures to the
target, ``run`` executes it with pytest, and ``report`` has the verdicts. Only ``suite`` and ``run`` need pytest.
"""
