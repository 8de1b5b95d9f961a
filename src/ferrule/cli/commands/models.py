"""`ferrule models`: what is known of models, and from where; `ferrule models probe` asks a model's server."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys

from ...app.session_settings import Settings
from ...core.model import ModelError
from ...output.plain import Style, clean
from ...providers.model_choice import choose_model
from ...providers.model_claims import HOW_TO_ENLARGE, LEAST_WINDOW, ModelClaim
from ...providers.model_listing import ListedModel, list_models
from ...providers.service_model import ServiceModel
from ..exits import FAILED, OK, Failed, UsageError
from ..session_flags import settings_from

HEADER = ("model", "window", "answer", "images", "documents", "$ in / out", "from")


def run(chosen: argparse.Namespace) -> int:
    settings = settings_from(chosen)
    if chosen.action == "probe":
        return asyncio.run(_probe(chosen, settings))
    models = list(list_models(settings.model.facts))
    if chosen.json:
        print(json.dumps([model.as_json() for model in models], indent=2, ensure_ascii=False))
    else:
        _list(models)
    return OK


async def _probe(chosen: argparse.Namespace, settings: Settings) -> int:
    environ = {**os.environ, **settings.environment}
    try:
        model = choose_model(settings.model.choose_name(chosen.name, environ), environ, settings.model)
    except ModelError as error:
        raise (Failed if error.kind == "key" else UsageError)(str(error)) from None
    if not isinstance(model, ServiceModel):
        raise UsageError(f"{model.name} has no server that could be asked. Name a model of a service.")
    try:
        claim = await model.ask_server()
    finally:
        await model.close()
    if chosen.json:
        print(json.dumps({"name": model.name, "said": None if claim is None else claim.as_json()}, indent=2))
    elif claim is not None and claim != ModelClaim():
        print("\n".join(f"{name}: {value}" for name, value in claim.as_json().items()))
    if claim is None:
        print(f"ferrule: the server of {model.name} cannot be asked, or does not answer.", file=sys.stderr)
    elif claim == ModelClaim():
        words = f'Set what you know: "models": {{"{model.name}": {{"window": N}}}} in your settings.'
        print(f"ferrule: the server says nothing about {model.name}. {words}", file=sys.stderr)
    elif claim.window is not None and claim.window < LEAST_WINDOW:
        print(f"ferrule: a window of at least {LEAST_WINDOW:,} tokens is needed. {HOW_TO_ENLARGE}", file=sys.stderr)
    return FAILED if claim is None or claim == ModelClaim() else OK


def _list(models: list[ListedModel]) -> None:
    style = Style.of(sys.stdout, os.environ)
    rows = [HEADER, *map(_row, models)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(HEADER))]
    for number, row in enumerate(rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        print(style.paint(line, "bold") if number == 0 else line)


def _row(model: ListedModel) -> tuple[str, ...]:
    facts = model.facts
    prices = "unknown" if facts.input_price is None else f"{facts.input_price:g} / {facts.output_price or 0:g}"
    date = f" on {model.date[:10]}" if model.date else ""
    where = f" ({model.origin}{date})" if model.origin else ""
    return (
        clean(model.name),
        f"{facts.window:,}",
        f"{facts.most_output:,}",
        "yes" if facts.takes_images else "no",
        "yes" if facts.takes_documents else "no",
        prices,
        clean(", ".join(dict.fromkeys(model.sources.values())) + where),
    )
