"""Texts with and without private data, for bench/privacy.py. Every value is made up from a seed.

The templates were written by the authors of the filter, before the numbers were looked at, from what agents write: shells,
logs, chats, configuration, code. They hold what the filter's patterns do not cover too (an obfuscated address, a secret in a
sentence, a bare AWS secret, a German phone number without its country), and near misses. They are no sample of anybody's
traffic: read the figures as a comparison on the same texts, not as a promise.
"""

import random
import string
from collections.abc import Callable, Mapping

ALNUM, HEX, BECH32 = (
    string.ascii_letters + string.digits,
    "0123456789abcdef",
    "qpzry9x8gf2tvdw0s3jn54khce6mua7l",
)


def _from(alphabet: str, length: int) -> Callable[[random.Random], str]:
    return lambda chance: "".join(chance.choices(alphabet, k=length))


def _iban(chance: random.Random) -> str:
    body = "".join(chance.choices(string.digits, k=18))
    check = 98 - int(f"{body}131400") % 97  # "DE00" as digits
    return f"DE{check:02d}{body}"


def _card(chance: random.Random) -> str:
    digits = [4, *(chance.randrange(10) for _ in range(14))]
    total = sum(d if i % 2 else (d * 2 if d < 5 else d * 2 - 9) for i, d in enumerate(digits))
    text = "".join(map(str, digits)) + str(-total % 10)
    return " ".join(text[i : i + 4] for i in range(0, 16, 4))


def _mail(chance: random.Random) -> str:
    return f"{chance.choice(['jane', 'a.b', 'ops+x', 'r_d'])}{chance.randrange(99)}@{chance.choice(['mail.example.org', 'corp.example', 'x.co.uk'])}"


# name: (class, value)
VALUES: Mapping[str, tuple[str, Callable[[random.Random], str]]] = {
    "aws": ("secret", lambda c: "AK" + "IA" + _from(string.ascii_uppercase + string.digits, 16)(c)),
    "github": ("secret", lambda c: "gh" + "p_" + _from(ALNUM, 36)(c)),
    "stripe": ("secret", lambda c: "sk_" + "live_" + _from(ALNUM, 24)(c)),
    "slack": ("secret", lambda c: "xox" + "b-" + _from(string.digits, 12)(c) + "-" + _from(ALNUM, 24)(c)),
    "openai": ("secret", lambda c: "sk" + "-proj-" + _from(ALNUM, 48)(c)),
    "nsec": ("secret", lambda c: "nse" + "c1" + _from(BECH32, 58)(c)),
    "jwt": ("secret", lambda c: f"eyJ{_from(ALNUM, 30)(c)}.eyJ{_from(ALNUM, 80)(c)}.{_from(ALNUM, 43)(c)}"),
    "pem": ("secret", lambda c: "-----BEGIN " + "PRIVATE KEY-----\n" + _from(ALNUM, 64)(c) + "\n-----END PRIVATE KEY-----"),
    "word": ("secret", lambda c: c.choice(["hunter", "Tr0ub4dor&", "s3cr3t-", "p@ss"]) + str(c.randrange(1000, 9999))),
    "b40": ("secret", _from(ALNUM + "/+", 40)),
    "hex64": ("secret", _from(HEX, 64)),
    "mail": ("email", _mail),
    "intl": ("phone", lambda c: f"+49 {c.randrange(30, 99)} {c.randrange(10**6, 10**7)}"),
    "us": ("phone", lambda c: f"({c.randrange(201, 989)}) 555-{c.randrange(1000, 9999)}"),
    "local": ("phone", lambda c: f"0{c.randrange(30, 99)}/{c.randrange(10**6, 10**7)}"),
    "iban": ("account_number", _iban),
    "card": ("account_number", _card),
    "dsn": ("url", lambda c: f"postgres://app:{_from(ALNUM, 12)(c)}@db.example.org:5432/app"),
    "basic": ("url", lambda c: f"https://ci:{_from(ALNUM, 20)(c)}@git.example.org/x.git"),
}  # fmt: skip

FOUND = (
    "export AWS_ACCESS_KEY_ID={aws}", "aws configure set aws_secret_access_key {b40}", "the bucket uses {b40}, rotate it",
    "git clone {basic}", "remote: https://github.com\nAuthorization: token {github}", '{{"token": "{github}", "n": 3}}',
    "STRIPE={stripe}", "curl -H 'Authorization: Bearer {jwt}' https://api.example.org", "cookie: session={jwt}; path=/",
    "slack said {slack} is revoked", "client = OpenAI(api_key='{openai}')", "my nostr key: {nsec}", "{pem}\n", 'key = """{pem}"""',
    "DB_PASSWORD={word}", "password: {word}", '{{"password": "{word}"}}', "the password is {word}", "log in with root / {word}",
    "secret_key_base: {hex64}", "mysql -u root -p{word} app", "DATABASE_URL={dsn}", "could not connect to {dsn}: timeout",
    "mail {mail} about it", "Author: Jane Roe <{mail}>", "from={mail} to={mail} status=sent", "jane at example dot org or {mail}",
    "call {intl} after six", "Tel.: {intl}", "phone {us}", "Rufen Sie {local} an", "IBAN {iban}", "pay to {iban} by Friday",
    '{{"iban": "{iban}", "amount": 12.5}}', "card {card} exp 12/29", "pan={card}", "{mail},{intl},{iban}",
)  # fmt: skip
CLEAN = (
    "commit {0} fixes it", "sha256:{1}", "uuid 01938f5e-0000-7000-8000-{2}", "at 2026-11-21T10:35:{3}.000Z on 10.0.{3}.1:8080", "version 1.{3}.{3}-rc.1",
    "max_tokens: {2}", "the token of the box expires", "password: ${{DB_PASSWORD}}", "password=os.environ['PW']", "password: [SECRET]",
    "api_key = settings.api_key", "order 4111 1111 1111 1112", "DE00 0000 0000 0000 0000 00", "id 1767225600{3}", "@decorator\ndef f(): ...",
    "scp file host:/tmp/{3}", "https://example.org/a:b@c?x={3}", "integrity sha512-{1}", "skeleton key-value sk-short", "secretary: somebody",
    "see RFC 7519 section {3}", "tel {3}", "-----BEGIN CERTIFICATE-----\nMIIB{0}\n-----END CERTIFICATE-----", "export PATH=$PATH:/opt/x{3}/bin",
    "def token(self) -> str:", "if token == expected:", "docker run -e TOKEN img", "row {3}, 555-{3}", "pi = 3.14159265358979{2}", "a@b",
)  # fmt: skip

Text = tuple[str, list[tuple[str, str]]]  # the text; (class, value) of what is in it


def texts(each: int, seed: int = 20261121) -> list[Text]:
    """`each` texts of every template."""
    chance = random.Random(seed)
    made: list[Text] = []
    for template in FOUND:
        for _ in range(each):
            held: list[tuple[str, str]] = []
            rest, text = template, ""
            for name in (part[1] for part in string.Formatter().parse(template) if part[1]):
                kind, make = VALUES[name]
                value = make(chance)
                before, _, rest = rest.partition("{" + name + "}")
                text += before.format() + value
                held.append((kind, value))
            made.append((text + rest.format(), held))
    for template in CLEAN:
        for _ in range(each):
            parts = (
                _from(HEX, 40)(chance),
                _from(HEX, 64)(chance),
                _from(string.digits, 12)(chance),
                chance.randrange(10, 59),
            )
            made.append((template.format(*parts), []))
    return made
