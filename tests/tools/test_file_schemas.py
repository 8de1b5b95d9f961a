"""What the model is told of the tools for files. A change here is a change of every request."""

from __future__ import annotations

from inline_snapshot import snapshot

from tests.requirement import requirement

from .wire_schemas import SCHEMAS


@requirement("CON-3")
def test_the_schema_of_edit() -> None:
    assert SCHEMAS["Edit"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {
    "file_path": {
      "description": "The file to change.",
      "type": "string"
    },
    "old_string": {
      "description": "The text to replace, exactly as in the file. Empty for a new file.",
      "type": "string"
    },
    "new_string": {
      "description": "The replacement text.",
      "type": "string"
    },
    "replace_all": {
      "default": false,
      "description": "Whether to replace every occurrence.",
      "type": "boolean"
    }
  },
  "required": [
    "file_path",
    "old_string",
    "new_string"
  ],
  "type": "object"
}\
""")


@requirement("CON-3")
def test_the_schema_of_write() -> None:
    assert SCHEMAS["Write"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {
    "file_path": {
      "description": "The file to write.",
      "type": "string"
    },
    "content": {
      "description": "The whole content of the file.",
      "type": "string"
    }
  },
  "required": [
    "file_path",
    "content"
  ],
  "type": "object"
}\
""")


@requirement("CON-3")
def test_the_schema_of_glob() -> None:
    assert SCHEMAS["Glob"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {
    "pattern": {
      "description": "What the path must match, such as \\"src/**/*.py\\".",
      "minLength": 1,
      "type": "string"
    },
    "path": {
      "type": "string",
      "description": "The directory to search. Omit for the working directory."
    },
    "include_ignored": {
      "default": false,
      "description": "Whether to find files that git ignores, too.",
      "type": "boolean"
    }
  },
  "required": [
    "pattern"
  ],
  "type": "object"
}\
""")


@requirement("CON-3")
def test_the_schema_of_grep() -> None:
    assert SCHEMAS["Grep"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {
    "pattern": {
      "description": "The regular expression to look for, in ripgrep's syntax.",
      "minLength": 1,
      "type": "string"
    },
    "path": {
      "type": "string",
      "description": "The file or directory to search. Omit for the working directory."
    },
    "output_mode": {
      "default": "files_with_matches",
      "description": "Paths (files_with_matches), matching lines (content), or how many each file has (count).",
      "enum": [
        "files_with_matches",
        "content",
        "count"
      ],
      "type": "string"
    },
    "glob": {
      "minLength": 1,
      "type": "string",
      "description": "Only files whose path matches: \\"*.py\\", \\"*.md,*.ts\\", \\"src/**\\"; not \\"!*.js\\"."
    },
    "type": {
      "minLength": 1,
      "type": "string",
      "description": "Only files of this type: \\"py\\", \\"js\\", \\"rust\\", \\"go\\" \\u2026"
    },
    "-A": {
      "default": 0,
      "description": "Lines to show after each match, in content mode.",
      "minimum": 0,
      "type": "integer"
    },
    "-B": {
      "default": 0,
      "description": "Lines to show before each match, in content mode.",
      "minimum": 0,
      "type": "integer"
    },
    "-C": {
      "default": 0,
      "description": "Lines to show before and after each match, in content mode.",
      "minimum": 0,
      "type": "integer"
    },
    "-n": {
      "default": true,
      "description": "Whether content mode shows line numbers.",
      "type": "boolean"
    },
    "-i": {
      "default": false,
      "description": "Whether upper and lower case are the same.",
      "type": "boolean"
    },
    "-o": {
      "default": false,
      "description": "Show, or count, each match by itself and not its whole line.",
      "type": "boolean"
    },
    "multiline": {
      "default": false,
      "description": "Whether a match may span lines; `.` then matches newlines.",
      "type": "boolean"
    },
    "head_limit": {
      "default": 250,
      "description": "How many files or lines to give at most; 0 for all.",
      "minimum": 0,
      "type": "integer"
    },
    "offset": {
      "default": 0,
      "description": "How many files or lines to skip first.",
      "minimum": 0,
      "type": "integer"
    },
    "include_ignored": {
      "default": false,
      "description": "Whether to search files that git ignores, too.",
      "type": "boolean"
    }
  },
  "required": [
    "pattern"
  ],
  "type": "object"
}\
""")


@requirement("CON-3")
def test_the_schema_of_notebook_edit() -> None:
    assert SCHEMAS["NotebookEdit"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {
    "notebook_path": {
      "description": "The notebook to change, an .ipynb file.",
      "type": "string"
    },
    "cell_id": {
      "type": "string",
      "description": "The cell's id, or its index from 0. To insert: the cell to insert after; omit it for the start."
    },
    "new_source": {
      "type": "string",
      "description": "The whole content of the cell. Required unless you delete."
    },
    "cell_type": {
      "enum": [
        "code",
        "markdown",
        "raw"
      ],
      "type": "string",
      "description": "The type of the cell. Required to insert; otherwise omit it to keep the type."
    },
    "edit_mode": {
      "default": "replace",
      "description": "What to do.",
      "enum": [
        "replace",
        "insert",
        "delete"
      ],
      "type": "string"
    }
  },
  "required": [
    "notebook_path"
  ],
  "type": "object"
}\
""")


@requirement("CON-3")
def test_the_schema_of_read() -> None:
    assert SCHEMAS["Read"] == snapshot("""\
{
  "additionalProperties": false,
  "properties": {
    "file_path": {
      "description": "The file to read.",
      "type": "string"
    },
    "offset": {
      "default": 1,
      "description": "The first line (in a notebook: cell) to read, counted from 1.",
      "minimum": 0,
      "type": "integer"
    },
    "limit": {
      "minimum": 1,
      "type": "integer",
      "description": "How many lines (in a notebook: cells) to read. Omit for as many as fit."
    },
    "pages": {
      "type": "string",
      "description": "Pages of a PDF document, such as \\"3\\" or \\"1-5\\", at most 20 at once."
    }
  },
  "required": [
    "file_path"
  ],
  "type": "object"
}\
""")
