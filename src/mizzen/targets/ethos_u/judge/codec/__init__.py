"""The compression of weight streams: what reads streams decodes them here.

The codec is Arm's, in C, and ends its process when a stream is damaged, so it decodes in a process
of its own. The simulator and what takes a stream apart share that process.

It must not know in which order weights lie in a stream, nor which operation takes them.
"""
