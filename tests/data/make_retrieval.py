"""`python tests/data/make_retrieval.py FOLDER` makes `retrieval.json` from the files of Debian's package wordnet-base.

500 entries: definitions of nouns that WordNet's own count calls common. 200 queries, 50 of a kind, each with its one entry:
paraphrase = the word defined, its synonyms and the kind of thing it is, none of which is in the definition;
rare = a word that no other definition has, beside one that many have; mixed = the word defined and a word of the definition;
inflected = three words of the definition, each in another form than there.
"""

import json
import random
import re
import sys
from collections import Counter
from pathlib import Path

ENTRIES, EACH, SEED, COMMON = 500, 50, 20, 5
_WORDS = """
    a an and are as at be been being by can for from has have in into is it its not of on one
    or other some such that the their them they this those to used usually was were when where which who whose with
"""
_STOP = frozenset(_WORDS.split())


def synsets(folder: Path) -> dict[str, tuple[list[str], str, list[str]]]:
    """Offset -> words, definition, offsets of hypernyms; of nouns (wndb(5))."""
    found = {}
    for line in (folder / "data.noun").read_text().splitlines():
        if line.startswith("  "):
            continue
        head, _, gloss = line.partition(" | ")
        parts = head.split()
        count = int(parts[3], 16)
        words = [word.replace("_", " ") for word in parts[4 : 4 + 2 * count : 2]]
        rest = parts[5 + 2 * count :]
        above = [rest[at + 1] for at in range(0, len(rest) - 3, 4) if rest[at] == "@"]
        found[parts[0]] = (words, re.split(r'; "', gloss)[0].strip(), above)
    return found


def common(folder: Path) -> set[str]:
    """The words whose first sense as a noun was counted at least COMMON times (cntlist(5))."""
    found = set()
    for line in (folder / "cntlist.rev").read_text().splitlines():
        sense, _number, count = line.split()[:3]
        word, _, rest = sense.partition("%")
        if rest.startswith("1:") and int(count) >= COMMON:
            found.add(word.replace("_", " "))
    return found


def content(text: str) -> list[str]:
    """Its content words."""
    return [word for word in re.findall(r"[a-z]{4,}", text.lower()) if word not in _STOP]


def inflected(word: str) -> str:
    """Another form of a word, as a writer would use."""
    if word.endswith("ing"):
        return word[:-3] + "ed"
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    if word.endswith("ed"):
        return word[:-2] + "ing"
    return (
        word[:-1] + "ies"
        if word.endswith("y")
        else word + ("es" if word.endswith(("s", "x", "ch", "sh")) else "s")
    )


def main(folder: Path) -> dict[str, list[dict[str, str]]]:
    """The document."""
    draw, nouns, known = random.Random(SEED), synsets(folder), common(folder)
    fit = [
        key for key, (words, gloss, above) in sorted(nouns.items())
        if words[0] in known and above and len(words) > 1 and 5 <= len(content(gloss)) <= 20
    ]  # fmt: skip
    chosen = draw.sample(fit, ENTRIES)
    often = Counter(word for key in chosen for word in set(content(nouns[key][1])))
    frequent = [word for word, _ in often.most_common(40)]
    queries: list[dict[str, str]] = []
    for kind in ("paraphrase", "rare", "mixed", "inflected"):
        made = 0
        for key in draw.sample(chosen, ENTRIES):
            words, gloss, above = nouns[key]
            own, query = content(gloss), ""
            stems = {word[:5] for word in own}
            if kind == "paraphrase":
                query = ", ".join([*words[:3], nouns[above[0]][0][0]])
                if stems & {word[:5] for word in content(query)} or not content(query):
                    continue
            elif kind == "rare":
                once = [word for word in own if often[word] == 1]
                query = f"{draw.choice(frequent)} {draw.choice(once)}" if once else ""
            elif kind == "mixed":
                query = f"{words[0]} {draw.choice(own)}"
            else:
                forms = [
                    inflected(word) for word in dict.fromkeys(own) if inflected(word) not in own
                ]
                query = " ".join(draw.sample(forms, 3)) if len(forms) >= 3 else ""
            if query:
                queries.append({"kind": kind, "query": query, "key": key})
                made += 1
            if made == EACH:
                break
    return {"entries": [{"key": key, "text": nouns[key][1]} for key in chosen], "queries": queries}


if __name__ == "__main__":
    out = Path(__file__).with_name("retrieval.json")
    out.write_text(json.dumps(main(Path(sys.argv[1])), indent=0, ensure_ascii=False) + "\n")
