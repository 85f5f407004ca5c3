"""The command line: one file a verb, each of which parses, calls a public function and prints."""
