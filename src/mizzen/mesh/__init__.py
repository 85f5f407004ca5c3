"""Networks on a mesh of many processing elements: mapped, checked, simulated, executed exactly.

A mesh is a machine of chips, routers and links with elements of their own memory, each an Arm core
with a small array of multipliers. A network is cut into tiles; each tile lies on an element with
its weights, takes boxes of tensors as messages and gives its own box on, image after image.

    machine     what there is: elements, routers, links, memories, as read from a file
    network     layers and tensors of a quantised network, and what a box of output needs of inputs
    mapping     tiles, their elements, their messages and routes: ours, by hand, or the owner's
    program     what each element holds and does, as files; a checker that knows no mapper
    simulation  how long it takes: analytic, by events, by flits
    execution   programs executed exactly: in one process, in several, on Ray

Arrows point down this list, but that simulation and execution know programs and machines only:
they, like the checker, have to be able to disagree with the mapper. Nothing here knows an NPU
family, but for machines whose elements are NPUs.
"""
