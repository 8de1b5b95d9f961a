"""Which models one conversation asks."""

from __future__ import annotations

import pytest

from ferrule.providers.model_choice import ModelChoice
from ferrule.sdk.opened_models import OpenedModels
from tests.requirement import requirement

OPENAI = {"OPENAI_BASE_URL": "http://127.0.0.1:1"}
ANTHROPIC = {"ANTHROPIC_API_KEY": "key"}


@requirement("TASK-1")
async def test_a_short_name_is_the_conversations_own_model_where_anthropic_cannot_be_asked() -> None:
    models = OpenedModels(None, OPENAI, ModelChoice())
    own = models.leading("openai:first")
    switched = models.leading("openai:second")

    assert models("sonnet") is switched is not own
    await models.close()


@requirement("TASK-1")
async def test_a_short_name_is_a_model_of_its_own_where_anthropic_can_be_asked() -> None:
    models = OpenedModels(None, OPENAI | ANTHROPIC, ModelChoice())
    own = models.leading("openai:first")

    assert models("haiku") is models("haiku") is not own
    assert models("haiku").name.startswith("claude-haiku")
    await models.close()


async def test_a_model_that_is_named_in_full_must_be_there() -> None:
    models = OpenedModels(None, OPENAI, ModelChoice())
    models.leading("openai:first")

    with pytest.raises(ValueError, match="ANTHROPIC_API_KEY"):
        models("anthropic:claude-sonnet-5-5")
    await models.close()
