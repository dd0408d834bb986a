"""A certificate authority of a test: a root that nothing trusts, and certificates of any name."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


class Authority:
    """`root` is the file that an operator would hand out."""

    def __init__(self, directory: Path, name: str = "Corp CA") -> None:
        self._directory, self._key = directory, ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._contexts: dict[tuple[str, int], ssl.SSLContext] = {}
        certificate = self._sign(
            self._name, self._key, 2, x509.BasicConstraints(ca=True, path_length=0)
        )
        self.root = directory / "root.pem"
        self.root.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        self.root.chmod(0o644)

    def context(self, host: str, days: int = 2) -> ssl.SSLContext:
        """Serves a certificate of that name; `days` below 0: it expired."""
        if (host, days) not in self._contexts:
            key = ec.generate_private_key(ec.SECP256R1())
            subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "leaf")])
            leaf = self._sign(
                subject, key, days, x509.BasicConstraints(ca=False, path_length=None), host
            )
            path = self._directory / f"leaf-{len(self._contexts)}.pem"
            path.write_bytes(
                key.private_bytes(
                    serialization.Encoding.PEM,
                    serialization.PrivateFormat.PKCS8,
                    serialization.NoEncryption(),
                )
                + leaf.public_bytes(serialization.Encoding.PEM)
            )
            made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            made.load_cert_chain(path)
            self._contexts[host, days] = made
        return self._contexts[host, days]

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        days: int,
        constraints: x509.BasicConstraints,
        host: str = "",
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        public, issuer = key.public_key(), self._key.public_key()
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=9))
            .not_valid_after(now + timedelta(days=days))
            .add_extension(constraints, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), False)
        )
        if host:
            usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
            builder = builder.add_extension(x509.SubjectAlternativeName([_name(host)]), False)
            builder = builder.add_extension(usage, critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
