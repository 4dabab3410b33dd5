"""One Lance table at its location, as pylance answers for it: rows, versions, tags, indices; and changes of its data by a person."""
