"""`python tests/peers/postgres/pin.py` writes `packages.lock`: PostgreSQL, pgvector, and the libraries that they load."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
LIBRARIES = """
    libaudit1 libc6 libcap-ng0 libcap2 libcom-err2 libgcc-s1 libgssapi-krb5-2 libicu76 libk5crypto3 libkeyutils1 libkrb5-3
    libkrb5support0 libldap2 liblz4-1 liblzma5 libpam0g libpcre2-8-0 libsasl2-2 libselinux1 libssl3t64 libstdc++6 libpq5 libsystemd0
    libuuid1 libxml2 libxxhash0 libzstd1 zlib1g
"""
PACKAGES = ["postgresql-17", "postgresql-17-pgvector", "dash", "tzdata", *LIBRARIES.split()]

if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))
    from debian_root import write_lock

    write_lock(HERE / "packages.lock", "trixie", {"amd64": PACKAGES, "arm64": PACKAGES})
