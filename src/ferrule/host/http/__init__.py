"""HTTP/1.1 for all that Ferrule asks of the network: models, pages, hooks. Start with `http_client.py`."""
