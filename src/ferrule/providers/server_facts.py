"""What a model's server says of it: vLLM, llama.cpp, LM Studio, Ollama, OpenRouter and those that answer like them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from ..host.http.http_client import HttpClient
from ..host.http.message import MEGABYTE, HttpError, HttpRequest, Timeouts
from ..host.http.urls import Url
from .model_claims import ModelClaim

TIMEOUTS: Final = Timeouts(connect=3.0, first_byte=5.0, idle=5.0)
MOST_LIST: Final = 16 * MEGABYTE
MILLION: Final = 1_000_000
_WINDOWS: Final = ("max_model_len", "context_length", "context_window", "max_context_length", "max_input_tokens")
"""In a list of models: vLLM; OpenRouter and Together; Groq; Mistral; Anthropic and LiteLLM."""
_OUTPUTS: Final = ("max_completion_tokens", "max_output_tokens")
_PRICES: Final = {
    "prompt": "input_price",
    "completion": "output_price",
    "input_cache_read": "cache_read_price",
    "input_cache_write": "cache_write_price",
}
_SAY_NOTHING: Final = ("api.openai.com", "api.anthropic.com")
_OF_CLOUDS: Final = (".azure.com", ".amazonaws.com", ".googleapis.com")

Json = dict[str, Any]


def may_be_asked(url: Url) -> bool:
    """Not those whose lists of models have names alone, or other forms."""
    return url.host not in _SAY_NOTHING and not url.host.endswith(_OF_CLOUDS)


async def ask_server(client: HttpClient, url: Url, headers: Sequence[tuple[str, str]], model: str) -> ModelClaim | None:
    """`url` is that of its API. `None` if the server cannot be asked; a claim without facts if it says nothing."""
    server = _Server(client, url, headers)
    listed = await server.get(f"{server.base}/models")
    entry = _entry(listed, model, ("id", "name"))
    said = _from_list(entry)
    if "window" not in said:
        for ask in (_llama_cpp, _lm_studio, _ollama):
            if more := await ask(server, model):
                said |= more
                break
    return ModelClaim.from_json(said) if said or server.answered else None


class _Server:
    def __init__(self, client: HttpClient, url: Url, headers: Sequence[tuple[str, str]]) -> None:
        self._client = client
        self._headers = tuple(one for one in headers if one[0] not in ("content-type", "accept"))
        path = re.sub(r"/(chat/completions|responses|messages)(\?.*)?$", "", url.target)
        self.base = f"{url.origin}{path}"
        """Where the list of models is, such as `/v1`."""
        self.root = self.base.removesuffix("/v1")
        self.answered = False

    async def get(self, address: str, body: Json | None = None) -> Json:
        """What it answers, or nothing. With a body it is a POST."""
        request = HttpRequest(
            url=Url.parse(address),
            method="GET" if body is None else "POST",
            headers=(*self._headers, ("content-type", "application/json")),
            body=b"" if body is None else json.dumps(body).encode(),
            timeouts=TIMEOUTS,
            most_body=MOST_LIST,
        )
        try:
            async with self._client.send(request) as response:
                data = b"".join([chunk async for chunk in response.chunks()])
                if response.status != 200:
                    return {}
                value = json.loads(data)
        except (HttpError, ValueError, RecursionError):
            return {}
        self.answered = True
        return cast(Json, value) if isinstance(value, dict) else {}


def _entry(listed: Json, model: str, names: Iterable[str]) -> Json:
    """That of the model in a list of them."""
    entries = listed.get("data") or listed.get("models")
    for entry in cast(list[Any], entries) if isinstance(entries, list) else []:
        if isinstance(entry, dict) and any(_same(cast(Json, entry).get(name), model) for name in names):
            return cast(Json, entry)
    return {}


def _same(listed: Any, model: str) -> bool:
    """Ollama lists `qwen3:latest` for `qwen3`."""
    return isinstance(listed, str) and listed.removesuffix(":latest") == model.removesuffix(":latest")


def _from_list(entry: Json) -> Json:
    """What an entry of `/models` has beyond the name.

    >>> _from_list({"id": "m", "context_length": 131072, "pricing": {"prompt": "0.000002", "completion": "0.00001"}})
    {'window': 131072, 'input_price': 2.0, 'output_price': 10.0}
    """
    said: Json = {}
    top = _object(entry.get("top_provider"))
    windows = [number for name in _WINDOWS for source in (top, entry) if (number := _count(source.get(name)))]
    if windows:
        said["window"] = min(windows)
    outputs = [number for name in _OUTPUTS for source in (top, entry) if (number := _count(source.get(name)))]
    if outputs:
        said["output"] = min(outputs)
    modalities = _object(entry.get("architecture")).get("input_modalities") or entry.get("input_modalities")
    if isinstance(modalities, list):
        said["images"], said["documents"] = "image" in modalities, "file" in modalities
    vision = _object(entry.get("capabilities")).get("vision")
    if isinstance(vision, bool):
        said["images"] = vision
    for name, fact in _PRICES.items():
        if (price := _price(_object(entry.get("pricing")).get(name))) is not None:
            said[fact] = price
    return said


async def _llama_cpp(server: _Server, model: str) -> Json:
    """It serves one model, whatever its name."""
    props = await server.get(f"{server.root}/props")
    window = _count(_object(props.get("default_generation_settings")).get("n_ctx")) or _count(props.get("n_ctx"))
    if not window:
        return {}
    vision = _object(props.get("modalities")).get("vision")
    return {"window": window} | ({"images": vision} if isinstance(vision, bool) else {})


async def _lm_studio(server: _Server, model: str) -> Json:
    entry = _entry(await server.get(f"{server.root}/api/v0/models"), model, ("id",))
    window = _count(entry.get("loaded_context_length")) or _count(entry.get("max_context_length"))
    return {"window": window, "images": entry.get("type") == "vlm"} if window else {}


async def _ollama(server: _Server, model: str) -> Json:
    """The length that it was trained for is not what it is served with, so it is not used."""
    shown = await server.get(f"{server.root}/api/show", {"model": model})
    if "model_info" not in shown and "parameters" not in shown:
        return {}
    said: Json = {}
    given = re.search(r"^\s*num_ctx\s+(\d+)", str(shown.get("parameters") or ""), re.MULTILINE)
    loaded = _entry(await server.get(f"{server.root}/api/ps"), model, ("name", "model"))
    if window := _count(loaded.get("context_length")) or (int(given[1]) if given else 0):
        said["window"] = window
    if isinstance(capabilities := shown.get("capabilities"), list):
        said["images"] = "vision" in capabilities
    return said


def _object(value: Any) -> Mapping[str, Any]:
    return cast(Json, value) if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _price(value: Any) -> float | None:
    """For a million tokens, from the price of one, which is text. Negative where it varies."""
    try:
        price = float(value)
    except (TypeError, ValueError):
        return None
    return round(price * MILLION, 6) if 0 <= price < 1 else None
