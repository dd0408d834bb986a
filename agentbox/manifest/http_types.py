"""The named types of parts of HTTP requests. Standard library only: the boot imports this."""

from typing import Annotated

from agentbox.manifest.declarations.constraints import Pattern, TypeInfo

HeaderName = Annotated[
    str,
    TypeInfo("header_name", "The name of an HTTP header.", "the name of a header", '"X-Region"'),
    Pattern("^[A-Za-z][A-Za-z0-9-]{0,63}$"),
]
HeaderValue = Annotated[
    str,
    TypeInfo(
        "header_value",
        'Printable ASCII without a space at either end; "" for none.',
        "the value of a header",
        '"eu-west"',
    ),
    Pattern("^$|^[!-~]([ -~]{0,1022}[!-~])?$"),
]
HttpPath = Annotated[
    str,
    TypeInfo(
        "http_path",
        "A path of an HTTP request, with * for any run of characters.",
        "a path of a request",
        '"/v1/*"',
    ),
    Pattern(r"^/[^\s?#\u0000-\u001f\u007f]{0,1023}$"),
]
