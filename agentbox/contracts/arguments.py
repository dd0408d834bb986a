"""Types of arguments that several resources share, with their bounds."""

from typing import Annotated

from agentbox.core.records.bounds import number_range, schema_keywords

PAGE_BOUNDS = (1, 500)  # items of a page
MAX_CURSOR = 2**53  # of a stream: above it JSON numbers are not exact
MAX_GENERATION = 2**31
MAX_GRACE = 60.0  # seconds, as in the manifest

Id = Annotated[str, schema_keywords(format="uuid")]
Cursor = Annotated[
    str, schema_keywords(description="`next_cursor` of an earlier page of this listing; opaque.")
]
Position = Annotated[int, number_range(0, MAX_CURSOR)]  # in a stream
Generation = Annotated[int, number_range(0, MAX_GENERATION)]  # of an agent
GraceSeconds = Annotated[float, number_range(0, MAX_GRACE)]
PageSize = Annotated[int, number_range(*PAGE_BOUNDS)]
