"""Search for better ways to compile a network: fewer cycles, less memory, the same integers.

What may be changed a family says (`mizzen.compiler.levers`): options of its compiler, exact
rewrites of the network. Candidates go the way that every compilation goes and are measured from
the artifact; those that are worth to be told of are proved like any other.

Options are tried in rounds, each from what the rounds before showed, the most promising first, so
that a search that is stopped early has the best part. What comes does not depend on how many
compilations run at once, unless time runs out.
"""

from mizzen.analysis.tuning.tune import Tuned, tune

__all__ = ["Tuned", "tune"]
