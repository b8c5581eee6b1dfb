"""The arguments of a tool: their published schema, and a call's arguments as a request.

The schema is the request model's own, said in fewer words: every client pays for the list of tools in each conversation.
"""

from __future__ import annotations

import difflib
import json
from functools import cache
from typing import Any, cast, get_args

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, JsonValue, ValidationError

from warp_debug_gradients.schemas import Detail, Target, invalid_fields
from warp_debug_gradients.tools import Tool

EXPLAINED = "diagnose"  # what all tools share is explained in this one
VERIFIES = "verify_fix"  # its arguments are the baseline's
NEEDED = ("script", "overrides", "parameter", "objective")
DETAILS = get_args(Detail)
DETAIL = {"default": "concise", "description": "Length of the answer.", "enum": [*DETAILS], "type": "string"}


@cache
def input_schema(tool: Tool) -> dict[str, Any]:
    """What the tool takes, as JSON Schema."""
    schema = short_schema(tool.request.model_json_schema())
    del schema["description"]
    properties = schema["properties"] = {**schema["properties"], "detail": DETAIL}
    for name in Target.model_fields if tool.name != EXPLAINED else ():
        if name not in NEEDED or tool.name == VERIFIES:
            properties.get(name, {}).pop("description", None)
    return schema


def short_schema(schema: JsonValue) -> Any:
    """A schema that says the same in fewer words.

    Titles repeat the names, an argument that may be null is one that may be left out, and an integer is a number.
    """
    if isinstance(schema, list):
        return [short_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    short: dict[str, Any] = {k: short_schema(v) for k, v in schema.items() if k != "title" or not isinstance(v, str)}
    options = [option for option in short.get("anyOf", []) if option != {"type": "null"}]
    if {"type": "number"} in options and {"type": "integer"} in options:
        options.remove({"type": "integer"})
    if len(options) == 1:
        del short["anyOf"]
        short = {**options[0], **short}
    elif options:
        short["anyOf"] = options  # not `type` with a list, which some clients cannot read
    if short.get("default", 0) is None:
        del short["default"]
    return short


def parse(tool: Tool, arguments: dict[str, Any]) -> tuple[BaseModel, Detail]:
    """A call's arguments as the request and the length of the answer, or a ToolError that says what is wrong."""
    properties: dict[str, Any] = input_schema(tool)["properties"]
    for name in arguments:
        if name not in properties:
            nearest = difflib.get_close_matches(name, properties, n=1, cutoff=0.5)
            hint = f"Did you mean {nearest[0]!r}?" if nearest else f"Known: {', '.join(properties)}."
            raise ToolError(f"Unknown argument {name[:200]!r}. {hint}")
    given = {k: _unquoted(v, properties[k]) for k, v in arguments.items() if v not in (None, "null")}
    detail = given.pop("detail", "concise")
    if detail not in DETAILS:
        raise ToolError(f"detail: {str(detail)[:200]!r} should be one of {', '.join(DETAILS)}.")
    try:
        return tool.request(**given), cast(Detail, detail)
    except ValidationError as error:
        raise ToolError(invalid_fields(error)) from error


def _unquoted(value: JsonValue, schema: dict[str, Any]) -> JsonValue:
    """A list or an object. Some clients send them as a string that holds JSON."""
    if schema.get("type") not in ("array", "object") or not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value  # refused by the model, in words
