"""Parts of layers that several families put together."""
