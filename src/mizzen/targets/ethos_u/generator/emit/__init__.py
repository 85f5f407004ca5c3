"""From a schedule to the words of a command stream.

A schedule has decided blocks, layouts, addresses and transfers; what is left follows from it and is
computed here: the parts of the shared buffer, the slots of lookup tables and their loads, the place
of constants, the waits between transfers and operations, and how far operations may overlap.
`plan` makes steps with addresses of a schedule, `order` their waits, `settings_u55` and
`settings_u85` their registers, of which `registers` writes those that change. What an operation
says in U55's words, `forms_u85` says in U85's.

It must not know networks or costs, nor what judges streams: simulator and hazard checker have their
own reading of every register.
"""

from mizzen.targets.ethos_u.generator.emit.stream import emit

__all__ = ["emit"]
