"""A lane: the block tables of one stream.

Owns page references, one block table a page group. Used from the engine thread only. Holds no
token and no tensor; the KV bytes lie in ``engine.cache.kv``.
"""
