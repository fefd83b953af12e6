"""The parts of a ``ModelSpec`` in torch, one file a part; ``engine.forward.model`` joins them."""
