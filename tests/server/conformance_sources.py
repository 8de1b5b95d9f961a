"""The prompts and resources that the official conformance suite expects of a server."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from mcp import types

from ferrule.server.caller import Caller
from ferrule.server.sources import Contents, NoSuchPrompt, NoSuchResource

from .conformance_asking import TEXT, form
from .conformance_tools import PIXEL

WORDS = ("paris", "park", "party", "test", "testing")
TEMPLATE = "test://template/{id}/data"


def _prompt(name: str, *arguments: str) -> types.Prompt:
    given = [types.PromptArgument(name=argument, description="A word.", required=True) for argument in arguments]
    return types.Prompt(name=name, description="A prompt for tests.", arguments=given or None)


def _saying(*contents: types.ContentBlock) -> Sequence[types.PromptMessage]:
    return [types.PromptMessage(role="user", content=content) for content in contents]


class SuitePrompts:
    """Satisfies `PromptSource` and `Completing`."""

    def prompts(self) -> Sequence[types.Prompt]:
        return (
            _prompt("test_simple_prompt"),
            _prompt("test_prompt_with_arguments", "arg1", "arg2"),
            _prompt("test_prompt_with_embedded_resource", "resourceUri"),
            _prompt("test_prompt_with_image"),
            _prompt("test_input_required_result_prompt"),
        )

    async def prompt(self, name: str, arguments: Mapping[str, str], caller: Caller, /) -> Sequence[types.PromptMessage]:
        match name:
            case "test_simple_prompt":
                return _saying(types.TextContent(text="This is a simple prompt for testing."))
            case "test_prompt_with_arguments":
                words = f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'"
                return _saying(types.TextContent(text=words))
            case "test_prompt_with_embedded_resource":
                held = types.TextResourceContents(
                    uri=arguments["resourceUri"], mime_type="text/plain", text="Embedded resource content for testing."
                )
                asked = types.TextContent(text="Please process the embedded resource above.")
                return _saying(types.EmbeddedResource(resource=held), asked)
            case "test_prompt_with_image":
                picture = types.ImageContent(data=PIXEL, mime_type="image/png")
                return _saying(picture, types.TextContent(text="Please analyze the image above."))
            case "test_input_required_result_prompt":
                asked = "What context should the prompt use?"
                answer = await caller.elicit("user_context", asked, form({"context": TEXT}))
                return _saying(types.TextContent(text=f"Use {answer.content}."))
            case _:
                raise NoSuchPrompt(f"There is no prompt named {name}.")

    async def completions(self, prompt: str, argument: str, begun: str, /) -> Sequence[str]:
        return [word for word in WORDS if word.startswith(begun)]


class SuiteResources:
    """Satisfies `ResourceSource`."""

    def resources(self) -> Sequence[types.Resource]:
        return (
            types.Resource(name="text", uri="test://static-text", mime_type="text/plain"),
            types.Resource(name="binary", uri="test://static-binary", mime_type="image/png"),
        )

    def templates(self) -> Sequence[types.ResourceTemplate]:
        return (types.ResourceTemplate(name="data", uri_template=TEMPLATE, mime_type="application/json"),)

    async def read(self, uri: str, caller: Caller, /) -> Sequence[Contents]:
        if uri == "test://static-text":
            text = "This is the content of the static text resource."
            return (types.TextResourceContents(uri=uri, mime_type="text/plain", text=text),)
        if uri == "test://static-binary":
            return (types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PIXEL),)
        found = re.fullmatch(r"test://template/([^/]+)/data", uri)
        if found is None:
            raise NoSuchResource(f"There is no resource {uri}.")
        text = json.dumps({"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"})
        return (types.TextResourceContents(uri=uri, mime_type="application/json", text=text),)
