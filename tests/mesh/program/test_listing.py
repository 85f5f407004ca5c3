"""The listing of an element, in full."""

from __future__ import annotations

from collections.abc import Callable

from mizzen.mesh.emission import emit
from mizzen.mesh.mapping import Mapping
from mizzen.mesh.program import listing

Made = dict[str, Callable[[], Mapping]]


def test_a_listing_says_what_is_where_and_what_is_done(by_hand: Made) -> None:
    program = emit(by_hand["split_sums"]())
    assert listing(program, 2) == LISTING
    assert "COPY     r4 " in listing(emit(by_hand["several_tiles_an_element"]()), 0)


def test_an_element_without_a_program_says_so(by_hand: Made) -> None:
    program = emit(by_hand["split_sums"]())
    assert listing(program, 15) == "chip 0, router 3,3, element 0 has no program"


LISTING = """\
chip 0, router 2,0, element 0: replica 0 of 1, 452 cycles an image

memory, 2100 of 98304 bytes
  r0   0x00000  constants           180
  r1   0x000c0  input           2 x 100  t1 [0:1, 0:5, 0:5, 0:4]
  r2   0x00190  sums            2 x 400  partial sums [0:1, 0:5, 0:5, 0:4]
  r3   0x004b0  sums            2 x 400  partial sums [0:1, 0:5, 0:5, 0:4]
  r4   0x007d0  output              100  t2 [0:1, 0:5, 0:5, 0:4]

for each image
  0    RECEIVE  r1 [0:1, 0:2, 0:5, 0:4] <- message 0 from chip 0, router 0,0, element 0
  1    RECEIVE  r1 [0:1, 2:5, 0:5, 0:4] <- message 1 from chip 0, router 1,0, element 0
  2    RECEIVE  r2 [0:1, 0:5, 0:5, 0:4] <- message 2 from chip 0, router 3,0, element 0
  3    RECEIVE  r3 [0:1, 0:5, 0:5, 0:4] <- message 5 from chip 0, router 2,1, element 0
  4    COMPUTE  r4 [0:1, 0:5, 0:5, 0:4] <- convolution layer1(r1, sums r2, sums r3, constants r0)\
 over channels 0:4, 452 cycles
  5    GIVE     r4 [0:1, 0:5, 0:5, 0:4] -> output t2"""
