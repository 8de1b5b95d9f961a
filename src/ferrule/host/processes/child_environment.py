"""The environment of processes that Ferrule starts: without Ferrule's own keys, and without prompts or pagers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress

SECRETS = re.compile(
    r"FERRULE_.*"
    r"|(ANTHROPIC|OPENAI|AZURE_OPENAI|GEMINI|GOOGLE|GOOGLE_AI|MISTRAL|GROQ|OPENROUTER|DEEPSEEK|XAI|COHERE|CO"
    r"|TOGETHER|FIREWORKS|PERPLEXITY|CEREBRAS|MOONSHOT|ZAI|DASHSCOPE|BRAVE|TAVILY)_(API_KEYS?|AUTH_TOKEN|ADMIN_KEY)"
    r"|CLAUDE_CODE_OAUTH_TOKEN|ANTHROPIC_CUSTOM_HEADERS|AWS_BEARER_TOKEN_BEDROCK|AZURE_OPENAI_AD_TOKEN"
    r"|OTEL_EXPORTER_OTLP(_[A-Z]+)?_HEADERS"
)
"""Names of what opens a door for Ferrule itself. Other people's keys, such as GITHUB_TOKEN, are theirs to use."""
SHORTEST_SECRET = 12
"""Characters; a value shorter than this may occur in other variables by chance."""

SHELL_MEANING = re.compile(
    r"BASH_ENV|ENV|SHELLOPTS|BASHOPTS|BASH_COMPAT|BASH_FUNC_.*|POSIXLY_CORRECT|CDPATH|GLOBIGNORE|EXECIGNORE|PROMPT_COMMAND"
)
"""What would make bash read a command differently from how it was judged."""

REPOSITORY = re.compile(
    r"GIT_(DIR|WORK_TREE|COMMON_DIR|INDEX_FILE|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|NAMESPACE|REPLACE_REF_BASE"
    r"|(LITERAL|GLOB|NOGLOB|ICASE)_PATHSPECS)"
)
"""What would make git use another repository, or other paths, than those that a command was judged by."""

QUIET = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "GH_PAGER": "cat",
    "BAT_PAGER": "cat",
    "DELTA_PAGER": "cat",
    "PSQL_PAGER": "cat",
    "AWS_PAGER": "",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    # Without a terminal vi waits for ever; this lets it do its `+` commands, then end
    "VIMINIT": "autocmd VimEnter * cquit",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "SSH_ASKPASS_REQUIRE": "never",
    "SUDO_ASKPASS": "false",
    "GH_PROMPT_DISABLED": "1",
    "GCM_INTERACTIVE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "TERM": "dumb",
    "NO_COLOR": "1",
}
LOUD = ("FORCE_COLOR", "CLICOLOR_FORCE", "LESSOPEN", "LESSCLOSE")


def child_environment(own: Mapping[str, str], *, secrets: Iterable[str] = ()) -> dict[str, str]:
    """`own` without keys, without what changes the meaning of a command, and with nothing that asks or pages.

    `secrets` are names of further variables to leave out. A copy of a key
    under another name is left out as well.
    """
    more = frozenset(secrets)
    hidden = _secret_values(own, more)
    kept = {
        name: value
        for name, value in own.items()
        if not _is_secret(name, more)
        and not SHELL_MEANING.fullmatch(name)
        and not REPOSITORY.fullmatch(name)
        and name not in LOUD
        and not any(secret in value for secret in hidden)
    }
    return kept | QUIET


def blank_own_keys() -> None:
    """Overwrite the keys in what the system shows of this process's environment; `os.environ` still has them.

    A command with all rights of the user can read `/proc/PID/environ` of Ferrule. Where that file does not exist,
    or cannot be written, nothing is done.
    """
    hidden = [os.fsencode(value) for value in _secret_values(os.environ, frozenset())]
    if not hidden:
        return
    with suppress(OSError, ValueError):
        with open("/proc/self/stat", "rb") as file:
            start = int(file.read().rpartition(b")")[2].split()[47])
        with open("/proc/self/environ", "rb") as file:
            shown = file.read()
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            for at, size in _places_of(hidden, shown):
                memory.seek(start + at)
                memory.write(bytes(size))


def _places_of(values: Iterable[bytes], shown: bytes) -> Iterable[tuple[int, int]]:
    """Where the values of variables that hold one of these begin, and how long they are."""
    at = 0
    for entry in shown.split(b"\0"):
        name, _, content = entry.partition(b"=")
        if any(value in content for value in values):
            yield at + len(name) + 1, len(content)
        at += len(entry) + 1


def _secret_values(own: Mapping[str, str], more: frozenset[str]) -> list[str]:
    return [value for name, value in own.items() if _is_secret(name, more) and len(value) >= SHORTEST_SECRET]


def _is_secret(name: str, more: frozenset[str]) -> bool:
    return name in more or SECRETS.fullmatch(name) is not None
