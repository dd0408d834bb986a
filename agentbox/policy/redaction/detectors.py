"""Detectors of mode `rules`: in process, in linear time. The patterns have bounded repeats, so that
no text makes them slow.
"""

import re
from collections.abc import Iterable, Mapping

from agentbox.policy.redaction.findings import Detector, TextSpan

# Published token formats: a literal, then the pattern with the vendor's prefix, alphabet and
# length. The pattern is tried at the literal only: searching a literal is a hundred times faster.
GITLAB = ("pat", "dt", "ft", "soat", "rt", "ptt", "agent", "imt")
_TOKENS: tuple[tuple[str, str], ...] = (
    ("AKIA", r"AKIA[0-9A-Z]{16}"),  # AWS access key id
    *((start, rf"{start}[0-9A-Z]{{16}}") for start in ("ASIA", "ABIA", "ACCA")),
    *((f"gh{kind}_", rf"gh{kind}_[A-Za-z0-9]{{36,255}}") for kind in "opsur"),  # GitHub
    ("github_pat_", r"github_pat_[A-Za-z0-9_]{22,255}"),
    *((f"gl{kind}-", rf"gl{kind}-[A-Za-z0-9_-]{{20,1024}}") for kind in GITLAB),
    ("glcbt-", r"glcbt-(?:[0-9a-fA-F]{2}_)?[A-Za-z0-9_-]{20,255}"),
    ("gloas-", r"gloas-[A-Za-z0-9_-]{64}"),
    ("GR1348941", r"GR1348941[A-Za-z0-9_-]{20,255}"),
    (
        "hooks.slack.com/services/T",
        r"hooks\.slack\.com/services/T[A-Za-z0-9_]{1,64}/B[A-Za-z0-9_]{1,64}/[A-Za-z0-9_]{1,64}",
    ),
    ("sq0", r"sq0(?:csp|atp)-[0-9A-Za-z_-]{22,43}"),  # Square
    ("AKC", r"AKC[a-zA-Z0-9]{60,255}"),  # Artifactory
    ("AccountKey=", r"AccountKey=[a-zA-Z0-9+/=]{88}"),  # Azure storage
    ("shp", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),  # Shopify
    ("lin_api_", r"lin_api_[A-Za-z0-9]{40}"),  # Linear
    ("sntrys_", r"sntrys_[A-Za-z0-9_=+/-]{40,255}"),  # Sentry
    ("hvs.", r"hvs\.[A-Za-z0-9_-]{24,255}"),  # Vault
    ("dckr_pat_", r"dckr_pat_[A-Za-z0-9_-]{27}"),  # Docker Hub
    *((start, rf"{start}[0-9a-f]{{32}}(?![A-Za-z0-9])") for start in ("AC", "SK")),  # Twilio
    ("sk-", r"sk-[A-Za-z0-9_-]{20,255}"),  # OpenAI, Anthropic (sk-ant-)
    ("k_live_", r"[srp]k_live_[A-Za-z0-9]{16,255}"),  # Stripe
    ("k_test_", r"[srp]k_test_[A-Za-z0-9]{16,255}"),
    ("xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,255}"),  # Slack
    ("AIza", r"AIza[0-9A-Za-z_-]{35}"),  # Google API
    ("ya29.", r"ya29\.[0-9A-Za-z_-]{20,255}"),  # Google OAuth
    ("hf_", r"hf_[A-Za-z0-9]{30,255}"),  # Hugging Face
    ("npm_", r"npm_[A-Za-z0-9]{36}"),
    ("pypi-", r"pypi-[A-Za-z0-9_-]{50,255}"),
    ("SG.", r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),  # SendGrid
    ("_v1_", r"do[opr]_v1_[a-f0-9]{64}"),  # DigitalOcean
    ("gsk_", r"gsk_[A-Za-z0-9]{40,255}"),  # Groq
    ("AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58}"),
    ("nsec1", r"nsec1[02-9ac-hj-np-z]{58}"),  # Nostr, NIP-19
    (
        "eyJ",
        r"eyJ[A-Za-z0-9_-]{8,4096}\.eyJ[A-Za-z0-9_-]{8,8192}\.[A-Za-z0-9_-]{8,4096}",
    ),  # JWT, RFC 7519
)
# Formats without a literal at the start: a text that each of them contains, then the pattern.
_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "-us",
        re.compile(r"(?<![A-Za-z0-9])(?P<value>[0-9a-f]{32}-us[0-9]{1,2})(?![A-Za-z0-9])"),
    ),  # Mailchimp
    (
        ":AA",
        re.compile(r"(?<![A-Za-z0-9])(?P<value>[0-9]{8,10}:AA[0-9A-Za-z_-]{33})(?![0-9A-Za-z_-])"),
    ),  # Telegram
    ("_authToken=", re.compile(r"_authToken=[ ]?(?P<value>[^\s\"']{8,512})")),  # npm
    (
        ".",
        re.compile(
            r"(?P<value>[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38})(?![\w-])"
        ),
    ),  # Discord
    (
        "earer ",
        re.compile(
            r"[Bb]earer (?P<value>(?=[A-Za-z._~+/-]{0,64}[0-9])[A-Za-z0-9._~+/-]{20,4096}={0,2})"
        ),
    ),  # RFC 6750
    (
        "uthorization",
        re.compile(
            r"uthorization[\"']?\s?[:=]\s?[\"']?[Bb]asic (?P<value>[A-Za-z0-9+/]{8,4096}={0,2})"
        ),
    ),  # RFC 7617
)
_LEAD_LENGTHS = {"k_live_": 1, "k_test_": 1, "_v1_": 3}  # characters of a token before its literal
_KEYS = tuple(
    (text, _LEAD_LENGTHS.get(text, 0), re.compile(rf"(?<![A-Za-z0-9_]){pattern}"))
    for text, pattern in _TOKENS
)
_PEM = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
_NAME = (
    r"(?:passwords?|passwd|passphrase|passcode|secrets?|credentials?|token|cvv|cvc|api[_-]?keys?"
    r"|access[_-]?keys?|private[_-]?keys?|secret[_-]?keys?)"
)
_WORDS = ("password", "passwd", "passphrase", "secret", "token", "key")
_KEY_NAME = re.compile(r"(?:api|access|private|secret)[_-]?key\Z")
_VALUE = re.compile(
    r"""\s{0,4}["']?\s{0,8}(?::=|=>|[:=])\s{0,8}(?:\[\s{0,8}(?=["']))?(?P<quote>["'])?"""
    r"""(?P<value>(?!\[[A-Z_]+\])(?(quote)[^"'\n]|[^\s"',;&<>]){6,4096})"""
)
_SECRET_KEY = re.compile(rf"(?:^|[^a-z]|(?<=[a-z])(?=[A-Z])){_NAME}$", re.IGNORECASE)
_EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}"
    r"@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,63}(?![A-Za-z0-9-])"
)
_PHONE = re.compile(
    r"(?<![\w+])(?:\+\d(?:[ .()/-]{0,2}\d){7,14}|\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4})(?!\w)"
)
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}(?![A-Za-z0-9])")
_CARD_NUMBER = re.compile(r"(?<![\w.-])[2-6](?:[ -]?\d){12,18}(?![\w-])")
_URL = re.compile(
    r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,31}://[^\s/@:?#\"'<>]{0,256}"
    r":[^\s/@\"'<>]{1,256}@[^\s\"'<>]{1,2048}"
)


def find_secrets(text: str) -> Iterable[TextSpan]:
    """Private keys, tokens of known formats, and values after a name such as `password` or
    `api_key`.
    """
    if "PRIVATE KEY" in text:
        for match in _PEM.finditer(text):
            yield TextSpan(match.start(), match.end(), "secret")
    for literal, lead, pattern in _KEYS:
        position = text.find(literal)
        while position >= 0:
            token = pattern.match(text, position - lead) if position >= lead else None
            if token is not None:
                yield TextSpan(token.start(), token.end(), "secret")
            position = text.find(literal, position + len(literal) if token is None else token.end())
    for literal, pattern in _SHAPES:
        if literal in text:
            for match in pattern.finditer(text):
                yield TextSpan(match.start("value"), match.end("value"), "secret")
    yield from _labelled_values(text)


def _labelled_values(text: str) -> Iterable[TextSpan]:
    """Values after a name and a separator: `password = ...`, `"api_key": "..."`."""
    lower = text.lower()
    if len(lower) != len(text):  # lower-casing can change the length, and with it positions
        lower = "".join(c.lower() if c.isascii() else c for c in text)
    for word in _WORDS:
        position = lower.find(word)
        while position >= 0:
            after = position + len(word)
            value = None
            if word != "key" or _KEY_NAME.search(lower, max(0, position - 8), after):
                value = _VALUE.match(text, after)
            if value is not None:
                yield TextSpan(value.start("value"), value.end("value"), "secret")
            position = lower.find(word, after if value is None else value.end())


def is_secret_name(key: str) -> bool:
    """Whether the member name indicates a secret: `password`, `github_token`, `apiKey`."""
    return _SECRET_KEY.search(key) is not None


def find_emails(text: str) -> Iterable[TextSpan]:
    """Mail addresses."""
    if "@" in text:
        for match in _EMAIL.finditer(text):
            yield TextSpan(match.start(), match.end(), "email")


def find_phones(text: str) -> Iterable[TextSpan]:
    """International numbers with `+`, and the grouped form of North America."""
    for match in _PHONE.finditer(text):
        yield TextSpan(match.start(), match.end(), "phone")


def find_account_numbers(text: str) -> Iterable[TextSpan]:
    """IBANs (ISO 13616: mod 97) and payment cards (ISO/IEC 7812: Luhn); digits with a wrong check
    digit are ignored.
    """
    for match in _IBAN.finditer(text):
        end = _iban_end(match.group())
        if end:
            yield TextSpan(match.start(), match.start() + end, "account_number")
    for match in _CARD_NUMBER.finditer(text):
        if passes_luhn(re.sub(r"[ -]", "", match.group())):
            yield TextSpan(match.start(), match.end(), "account_number")


# Issuer ranges of payment cards with their lengths (ISO/IEC 7812-1 and the networks' public
# tables).
_ISSUERS: tuple[tuple[int, int, tuple[int, ...]], ...] = (
    (400000, 499999, (13, 16, 19)),
    (510000, 559999, (16,)),
    (222100, 272099, (16,)),
    (340000, 349999, (15,)),
    (370000, 379999, (15,)),
    (300000, 305999, (14, 16)),
    (360000, 369999, (14,)),
    (380000, 399999, (14, 16)),
    (352800, 358999, (16, 17, 18, 19)),
    (500000, 509999, (16,)),
    (560000, 699999, (16, 17, 18, 19)),
)


def is_card_number(number: float) -> bool:
    """Whether a bare number is a payment card. As it has no separators, its issuer must be known
    too.
    """
    if not 10**12 <= number < 10**19 or (isinstance(number, float) and not number.is_integer()):
        return False
    digits = str(int(number))
    issuer = int(digits[:6])
    is_issued = any(
        low <= issuer <= high and len(digits) in lengths for low, high, lengths in _ISSUERS
    )
    return is_issued and passes_luhn(digits)


def find_urls(text: str) -> Iterable[TextSpan]:
    """URLs that carry a password."""
    if "://" in text:
        for match in _URL.finditer(text):
            yield TextSpan(match.start(), match.end(), "url")


def _iban_end(text: str) -> int:
    """Length of the longest prefix that is an IBAN and ends at a group, since words may follow; 0
    if none.
    """
    ends = [len(text), *(match.start() for match in reversed(list(re.finditer(" ", text))))]
    return next((end for end in ends if is_iban(text[:end].replace(" ", ""))), 0)


def is_iban(text: str) -> bool:
    """Checks an IBAN without spaces: rearranged and with letters as 10 to 35, it is 1 modulo 97."""
    if not 15 <= len(text) <= 34:
        return False
    return int("".join(str(int(character, 36)) for character in text[4:] + text[:4])) % 97 == 1


def passes_luhn(digits: str) -> bool:
    """Checks the check digit of a card number."""
    doubled = [int(digit) * (1 + index % 2) for index, digit in enumerate(reversed(digits))]
    return sum(value // 10 + value % 10 for value in doubled) % 10 == 0


RULES: Mapping[str, Detector] = {
    "account_number": find_account_numbers,
    "email": find_emails,
    "phone": find_phones,
    "secret": find_secrets,
    "url": find_urls,
}
