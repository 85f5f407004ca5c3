"""Prints, as JSON, what TOSA's own tools say of its operators; runs where they are installed.

Number of operands, places of constants and types of operands are from the generator of the
conformance tests; attributes are from the schema of TOSA files.
"""

import json
import re
import sysconfig
from pathlib import Path
from typing import Any

from generator.tosa_test_gen import TosaTestGen  # pyright: ignore[reportMissingImports] the tools' own

TABLE = re.compile(r"table (\w+)Attribute \{(.*?)\}", re.DOTALL)


def operators() -> dict[str, Any]:
    found: dict[str, Any] = {}
    rows: dict[str, Any] = TosaTestGen.TOSA_OP_LIST
    for row in rows.values():
        types = row["types"]["1.0.0"] if isinstance(row["types"], dict) else row["types"]
        kinds = [kinds if isinstance(kinds, list) else [kinds] for kinds in types]
        operator: dict[str, Any] = {
            "operands": sum(row["operands"]),
            "constant": list(row.get("ctc_positions", ())),
            "types": [[getattr(kind, "name", kind) for kind in each] for each in kinds],
        }
        found.setdefault(row["op"].name, []).append(operator)
    return found


def attributes() -> dict[str, dict[str, str]]:
    schema = Path(sysconfig.get_path("purelib"), "bin", "tosa.fbs").read_text()
    comment = re.compile(r"//.*|\(.*?\)")
    fields = re.compile(r"(\w+)\s*:\s*([^;]+)")
    return {
        name.upper(): {field: kind.strip() for field, kind in fields.findall(comment.sub("", body))}
        for name, body in TABLE.findall(schema)
    }


print(json.dumps({"operators": operators(), "attributes": attributes()}))
