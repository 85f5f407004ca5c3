"""Reports as one HTML file each: pages of plain data, rendered by templates.

A page is made of blocks (facts, tables, charts, graphs, timelines) that know nothing of what they
are about; who has something to report fills them in. The file needs no network: style and script
are inside. It is for keyboards and screen readers too, in light and dark, and prints. Templates are
Jinja's, which is needed only where a report is written.
"""

from mizzen.report.page.blocks import (
    Bar,
    Block,
    Box,
    Cell,
    Facts,
    Figure,
    Figures,
    Graph,
    Lane,
    Limit,
    Line,
    Lines,
    Link,
    Listing,
    Map,
    Node,
    Note,
    Occupancy,
    Page,
    Paragraph,
    Part,
    Piece,
    Point,
    Points,
    Section,
    Series,
    Shares,
    Table,
    Timeline,
)
from mizzen.report.page.rendering import render

__all__ = [
    "Bar",
    "Block",
    "Box",
    "Cell",
    "Facts",
    "Figure",
    "Figures",
    "Graph",
    "Lane",
    "Limit",
    "Line",
    "Lines",
    "Link",
    "Listing",
    "Map",
    "Node",
    "Note",
    "Occupancy",
    "Page",
    "Paragraph",
    "Part",
    "Piece",
    "Point",
    "Points",
    "Section",
    "Series",
    "Shares",
    "Table",
    "Timeline",
    "render",
]
