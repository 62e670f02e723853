"""One head of a transformers model, taken apart."""

from collections.abc import Mapping
from typing import Any

from attnviz.models.engine import RecordedHead
from attnviz.models.huggingface import head_parts
from attnviz.records.capture import Kind
from attnviz.records.heads import Head


def dissected(
    model: Any, inputs: Mapping[str, Any], kind: Kind, head: Head, query: int
) -> RecordedHead:
    """What one head computes, and the row of a query."""
    return head_parts.dissected(model, inputs, kind, [head], query)[0]
