"""Suggestions for misspelt names."""

from collections.abc import Iterable


def suggest_names(word: str, names: Iterable[str], limit: int = 3) -> list[str]:
    """At most `limit` names within an edit distance of 2, or of a third of the word's length,
    closest first. If there is none, names that start with the word: `timeout_seconds` for
    `timeout`.
    """
    max_distance, all_names = max(2, len(word) // 3), list(names)
    ranked = sorted((edit_distance(word.lower(), name.lower()), name) for name in all_names)
    close_names = [
        name for steps, name in ranked if steps <= min(max_distance, max(len(word), len(name)) - 1)
    ]
    return (
        close_names or sorted(name for name in all_names if name.startswith(f"{word.lower()}_"))
    )[:limit]


def edit_distance(first: str, second: str) -> int:
    """Edit distance; swapping two adjacent letters counts as one (optimal string alignment)."""
    previous_row: list[int] = []
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        previous_row, row, older_row = row, [i], previous_row
        for j, b in enumerate(second, 1):
            steps = min(previous_row[j] + 1, row[j - 1] + 1, previous_row[j - 1] + (a != b))
            if i > 1 and j > 1 and a == second[j - 2] and first[i - 2] == b:
                steps = min(steps, older_row[j - 2] + 1)
            row.append(steps)
    return row[-1]
