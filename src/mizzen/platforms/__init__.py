"""What operating systems have or lack, said once, with a form for those that lack it.

Linux, macOS and Windows differ in how a process is bounded (`limits`), how a file is locked
(`locks`), and in what a pipe says whose other end is gone (`pipes`). Who uses these asks no
platform: each function does what this one can, and says in its docstring what is missing where.

It must not know what runs in a process, nor what is in a file.
"""
