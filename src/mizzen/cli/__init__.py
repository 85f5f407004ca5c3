"""The command line: one file for each verb.

A verb adds its options, calls a public function, and returns an `Answer`: what goes to stdout as
text or, with `--json`, as one document, and the failures that decide the exit status. `console` is
the only place that prints, `layout` the one that aligns; `configuration` has the options that verbs
which compile share.

A verb decides nothing: whatever it says can be had from Python too. Options are spelled as Vela
spells them. The files of all verbs are imported whatever is asked for, so what takes time to import
is imported inside `execute`.
"""
