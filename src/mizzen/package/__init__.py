"""What leaves Mizzen as a file: networks of TFLite and TOSA, written and cut.

Writers take plain data (a graph, or a file's own records) and return bytes; tests read those with
readers that others wrote. Records that Mizzen does not understand are kept as
they came, so that cutting a network in parts loses nothing.

It must not know targets, nor who asks: compilers decide what goes into a file.
"""
