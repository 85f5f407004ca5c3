"""What is known of an artifact, as files that other tools read.

Each file is a format: the trace that Perfetto shows (`trace_file`), Vela's tables
(`vela_tables`), node data of Model Explorer (`model_explorer`), and all of it as one JSON document
(`document`), of which `schema` says the form. Formats are those tools' own, so that nothing need
be converted; what they have no place for comes after what they have.

Numbers are those of `mizzen.analysis.findings`, the same as on the page.
"""

from mizzen.analysis.files.document import findings_document, sums
from mizzen.analysis.files.model_explorer import node_data
from mizzen.analysis.files.schema import document_schema
from mizzen.analysis.files.trace_file import inference_trace
from mizzen.analysis.files.vela_tables import per_layer_table, vela_tables

__all__ = [
    "document_schema",
    "findings_document",
    "inference_trace",
    "node_data",
    "per_layer_table",
    "sums",
    "vela_tables",
]
