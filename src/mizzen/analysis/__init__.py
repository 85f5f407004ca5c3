"""What artifacts cost, need and get right: costs, memory, comparisons, data sets, searches.

An analysis asks artifacts and the compiler, and answers with the plain dataclasses of
`mizzen.report`, which the command line, the HTML report and the files for other tools all read. So
every number is computed once, and each of them can be asked for from Python as well.

Nothing here knows how a command stream is made, or prints.
"""
