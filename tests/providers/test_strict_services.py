"""The strict services refuse what their vendors refuse, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from ferrule.host.http.http_client import HttpClient
from ferrule.providers.model_catalog import open_model
from ferrule.testing.model_server import ModelServer
from ferrule.testing.services import SERVICES, LoggedRequest, open_service
from tests.providers.hearing import heard, text_of


def asked(path: str, body: dict[str, Any], **headers: str) -> LoggedRequest:
    import json

    return LoggedRequest(path, headers, json.dumps(body).encode())


@pytest.mark.parametrize("name", SERVICES)
async def test_a_first_request_is_taken_by_every_service(name: str) -> None:
    service = open_service(name)
    async with ModelServer.playing({"turns": [{"text": "Hello there."}]}, service=service) as server:
        async with HttpClient({}) as client:
            events = await heard(open_model(service.model, server.environ, client=client))

    assert text_of(events) == "Hello there."
    assert not server.refusals
