"""The names that a misspelt one may have meant."""

from collections.abc import Iterable


def nearest(word: str, names: Iterable[str], limit: int = 3) -> list[str]:
    """At most `limit` names within an edit distance of 2, or of a third of the word's length; the closest first. Where
    there is none, those that the word begins: `timeout` of `timeout_seconds`."""
    reach, all_names = max(2, len(word) // 3), list(names)
    ranked = sorted((distance(word.lower(), name.lower()), name) for name in all_names)
    near = [name for steps, name in ranked if steps <= min(reach, max(len(word), len(name)) - 1)]
    return (near or sorted(name for name in all_names if name.startswith(f"{word.lower()}_")))[:limit]


def distance(left: str, right: str) -> int:
    """Edits between two words; two neighbouring letters swapped count as one (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        before, row, above = row, [i], before
        for j, b in enumerate(right, 1):
            steps = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                steps = min(steps, above[j - 2] + 1)
            row.append(steps)
    return row[-1]
