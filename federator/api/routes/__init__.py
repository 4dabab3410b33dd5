"""The routes of the federation's own API, one module per resource.

``{id:text}`` in a path is its rest, with every character. Starlette's ``path`` ends before a line break, which catalogs allow in names.
"""

from starlette.convertors import PathConvertor, register_url_convertor


class _TextConvertor(PathConvertor):
    regex = r"[\s\S]*"


register_url_convertor("text", _TextConvertor())
