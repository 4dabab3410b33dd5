"""The Lance namespace interface over any catalog: facade, identifiers, paging and inspection."""
