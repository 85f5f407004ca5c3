"""Words and turns that the documentation does without, and what to write instead.

Each is what a reader stumbled over: a term that is not the field's, or a turn that hides who does
what. A pattern is a regular expression; its case is ignored.
"""

from __future__ import annotations

INSTEAD = {
    r"\bin front of\b": "before",
    r"\bbehind\b": "after, or who does it",
    r"\bnobody\b": "no, not any; say what happens",
    r"\bwhich (it|they) says?\b": "a sentence of its own: it reports ...",
    r"\bone's alone\b": "a sentence that names whose it is",
    r"\bthere is nothing\b": "say what happens",
    r"\bthat where\b": "if",
    r"\bpoints? of the front\b|\brows? of the front\b": "points of the Pareto front",
    r"(?<!Pareto )\bthe front\b(?![- ]end)": "the Pareto front",
    r"\b(is|are|was|were|be) (told|said)\b": "is reported, is documented",
    r"\btells? (how|what|which|whether|of|times)\b|\btold\b": "reports, shows, says",
    r"\breal numbers?\b": "float",
    r"\bso many\b": "a number, or that many",
    r"\bheld? (it )?against\b|\bheld to one another\b": "compared with",
    r"\botherwise than\b": "differently from",
    r"\blikewise\b": "the same",
    r"\breckons?\b": "computes, estimates",
    r"\b(taken|takes?|taking) (it |them )?apart\b": "decomposed",
    r"\bmade to tell\b": "chosen, generated",
    r"\bdearest\b": "slowest, most expensive",
    r"\bwhatever (the|it|they)\b": "any",
    r"\bof whom\b|\bby whom\b|\bwho (knows|infers|executes)\b": "name the part",
    r"\bhas no say\b|\bwithout a say\b": "has no effect",
    r"\bgoes? without\b": "needs no",
    r"\bnot one (differs|output)\b": "no output differs",
    r"\bturns out\b|\bof late\b|\bby and by\b": "leave it out",
    r"^what [^?]*\.$": "name the thing, not `what ... is`",
}
