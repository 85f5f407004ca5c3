"""The report of an artifact as a page: what one asks of a network on an NPU, on one sheet.

Each file is a section: it takes `mizzen.analysis.findings` and gives blocks of
`mizzen.report.page`, which knows the markup. Pictures show numbers that stand in a table too, and
layers, operations and commands lead to each other by anchors, which `anchors` names.

Nothing is computed here but sums and places; what is not known is said, and never estimated.
"""

from mizzen.analysis.page.page import report_page

__all__ = ["report_page"]
