"""What a customer asks for: weighted phrases, minus what they deny, imagine or tell of others."""

from __future__ import annotations

import re
from typing import NamedTuple

PHRASES: dict[str, tuple[tuple[str, float], ...]] = {
    "refund": (
        (r"\brefund(?:ed|s)?\b", 2.0),
        (r"\bmoney (?:go |goes |given )?back\b", 2.0),
        (r"\breimburse", 2.0),
        (r"\b(?:return|send back) (?:it|them|this|the \w+)\b", 1.0),
    ),
    "replacement": (
        (r"\breplace(?:ment|d)?\b", 2.0),
        (r"\b(?:swap|exchange)\b", 2.0),
        (r"\b(?:send|have|post) (?:me |us )?(?:a|an|one|two|three|another)\b[^,;]*\bnew\b", 2.0),
        (r"\b(?:send|post) (?:me |us )?(?:another|two more|a fresh)\b", 2.0),
    ),
    "cancel": (
        (r"\bcancel(?:led|ling|lation)?\b", 2.0),
        (r"\btake me off\b", 2.0),
        (r"\bgive up (?:my|the) (?:seat|place)\b", 1.5),
    ),
    "escalate": (
        (r"\b(?:scald|burn|injur|hurt|bleeding|stitches)\w*", 2.5),
        (r"\b(?:letter before action|small claims?|solicitors?|trading standards)\b", 2.5),
        (r"\b(?:manager|someone responsible)\b", 1.0),
    ),
}
REQUEST = re.compile(r"\b(?:please|could you|can you|i'd like|i would like|i want|how do i)\b")
DENIAL = re.compile(r"\b(?:not|no|nobody|never|without|neither|nor)\b|n't\b")
IMAGINED = re.compile(r"\b(?:nearly|almost|thought about|considered|would have|i'd have|if)\b")
ELSEWHERE = re.compile(r"\b(?:another shop|elsewhere|other shops?|somebody else)\b")
TERMS = re.compile(r"\b(?:up to which|until when|how (?:long|many)|by when|when do you)\b")

THRESHOLD = 2.0
COMPILED = {
    action: tuple((re.compile(phrase), weight) for phrase, weight in phrases)
    for action, phrases in PHRASES.items()
}


class Intent(NamedTuple):
    """The best reading of a message.

    Attributes:
        action: what is asked for; ``information`` when nothing else is.
        sentence: where it is asked for, or empty.
        confidence: how far the reading is ahead of the next one, in [0, 1].
    """

    action: str
    sentence: str
    confidence: float


def read_intent(sentences: list[str]) -> Intent:
    """The action the sentences ask for."""
    scores = dict.fromkeys(COMPILED, 0.0)
    said: dict[str, tuple[float, str]] = {}
    for sentence in sentences:
        for action, score in _score(sentence.lower()).items():
            scores[action] += score
            if score > said.get(action, (0.0, ""))[0]:
                said[action] = (score, sentence)
    ranked = sorted(scores, key=lambda action: scores[action], reverse=True)
    best, second = ranked[0], ranked[1]
    if scores["escalate"] >= THRESHOLD:  # a hurt hand comes before a wish for a new jug
        best, second = "escalate", ranked[0] if ranked[0] != "escalate" else ranked[1]
    if scores[best] < THRESHOLD:
        return Intent("information", "", round(1 - scores[best] / (2 * THRESHOLD), 2))
    ahead = scores[best] / (scores[best] + max(scores[second], 0.0) + 0.5)
    return Intent(best, said[best][1], round(ahead, 2))


def _score(sentence: str) -> dict[str, float]:
    """Points for each action from one sentence, after what the sentence takes back."""
    if IMAGINED.search(sentence) or ELSEWHERE.search(sentence) or TERMS.search(sentence):
        return {}
    asks = 1.5 if REQUEST.search(sentence) else 1.0
    points: dict[str, float] = {}
    for action, phrases in COMPILED.items():
        for phrase, weight in phrases:
            found = phrase.search(sentence)
            if found and not _denied(sentence, found.start()):
                points[action] = points.get(action, 0.0) + weight * asks
    return points


def _denied(sentence: str, position: int) -> bool:
    """Whether a denial stands before the phrase, in the same clause."""
    clause = re.split(r"[,;:]|\bbut\b", sentence[:position])[-1]
    return DENIAL.search(clause) is not None
