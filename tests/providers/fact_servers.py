"""Servers on loopback that answer as vLLM, llama.cpp, LM Studio, Ollama and OpenRouter do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

VLLM = {"/v1/models": {"object": "list", "data": [{"id": "qwen3", "owned_by": "vllm", "max_model_len": 40_960}]}}
LLAMA_CPP = {
    "/v1/models": {"data": [{"id": "qwen3", "owned_by": "llamacpp", "meta": {"n_ctx_train": 262_144}}]},
    "/props": {"default_generation_settings": {"n_ctx": 24_576}, "modalities": {"vision": True, "audio": False}},
}
LM_STUDIO = {
    "/v1/models": {"data": [{"id": "qwen3", "owned_by": "organization_owner"}]},
    "/api/v0/models": {
        "data": [
            {"id": "other", "type": "llm", "max_context_length": 4_096},
            {"id": "qwen3", "type": "vlm", "max_context_length": 131_072, "loaded_context_length": 20_480},
        ]
    },
}
OLLAMA = {
    "/v1/models": {"data": [{"id": "qwen3:latest", "owned_by": "library"}]},
    "/api/show": {
        "parameters": 'stop      "<|im_end|>"\nnum_ctx                        18432',
        "model_info": {"qwen3.context_length": 40_960},
        "capabilities": ["completion", "tools"],
    },
    "/api/ps": {"models": []},
}
OLLAMA_LOADED = {**OLLAMA, "/api/ps": {"models": [{"name": "qwen3:latest", "context_length": 32_768}]}}
OPENROUTER = {
    "/v1/models": {
        "data": [
            {
                "id": "qwen3",
                "context_length": 262_144,
                "architecture": {"input_modalities": ["text", "image", "file"]},
                "pricing": {"prompt": "0.0000005", "completion": "0.000002", "input_cache_read": "0.00000005"},
                "top_provider": {"context_length": 131_072, "max_completion_tokens": 16_384},
            }
        ]
    }
}


@asynccontextmanager
async def fact_server(answers: Mapping[str, Any]) -> AsyncGenerator[tuple[str, list[str]]]:
    """Its URL, and the requests that it got. Other paths are answered with 404."""
    asked: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                method, path, _ = line.decode().split()
                length = 0
                while (header := await reader.readline()).strip():
                    name, _, value = header.decode().partition(":")
                    length = int(value) if name.lower() == "content-length" else length
                await reader.readexactly(length)
                asked.append(f"{method} {path}")
                status = "200 OK" if path in answers else "404 Not Found"
                body = json.dumps(answers.get(path, {"error": "no such path"})).encode()
                writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
                await writer.drain()
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        yield f"http://{host}:{port}", asked
