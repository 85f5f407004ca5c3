"""Accuracy of the artifact itself: a data set through the simulated NPU, judged by labels.

`evaluate` takes files, arrays, or whatever yields `(x, label)`, and gives an `Evaluation` of
`mizzen.report.evaluation`. Outputs of all samples are put together in their order before anything
is computed of them, so that no figure depends on batches or processes.

It knows networks by what they take and give, and no compiler; metrics know no networks at all.
"""

from mizzen.analysis.evaluation.evaluate import evaluate
from mizzen.analysis.evaluation.evaluation import Judgement, Listener, judge
from mizzen.analysis.evaluation.judging import Join
from mizzen.analysis.evaluation.metrics import Task

__all__ = ["Join", "Judgement", "Listener", "Task", "evaluate", "judge"]
