"""The tables of the store: schema, migrations, rows and blobs. ``app.chat.store`` is the way in."""
