from __future__ import annotations

from mizzen.isa.listing import markdown

from .toy import TOY

PAGE = """\
# Commands of Toy

These are all commands, with their fields and the meaning of each. The key is the low end of word 0.
Bits are counted in their word; a field in several places has its most significant bits first.
Values are those that you read and write: sizes, not sizes minus one. Bits without a field must be
zero.

| Key | Command | Field | Bits | Values | Meaning |
|---|---|---|---|---|---|
| `0x01` | `PAINT` | | | | Paint what MOVE has reached |
| | | `colour` | word 0, 9:8 | [Colour](#colour) | Colour of the paint |
| | | `coats` | word 0, 20, word 0, 12 | 1 to 4 layers | Layers of paint |
| `0x02` | `MOVE` | | | | Set the position |
| | | `distance` | word 0, 31:24, word 1, 31:0 | -549755813888 to 549755813887 bytes | How far |
| | | `speed` | word 0, 15:8 | 0 to 255 | How fast |
| `0xff` | `HALT` | | | | Stop |

## Enumerations

### Colour

What the paint looks like.

| Value | Name |
|---|---|
| 0 | `RED` |
| 2 | `BLUE` |
"""


def test_the_page_has_every_row() -> None:
    assert markdown(TOY) == PAGE
