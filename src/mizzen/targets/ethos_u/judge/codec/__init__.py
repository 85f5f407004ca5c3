"""The compression of weight streams: the simulator decodes them here.

`decoding` takes whole streams, `chunks` walks through one and says where its numbers are, `numbers`
decodes many of them at once. A damaged stream ends as an error, whatever its bytes are.

It must not know in which order weights lie in a stream, nor which operation takes them; nor how
streams are written, which is the generator's: the two are written apart.
"""
