# SPDX-License-Identifier: GPL-2.0
"""Makes a throw-away OpenPGP key with openssl, then signs files with it.

The build root verifies signatures with sqv, but has nothing to make them with. This writes the few version 4 packets of
RFC 9580 that an archive needs: an RSA key, its user id, the signature on that, and detached signatures.
"""

import base64
import hashlib
import pathlib
import struct
import subprocess
import time

RSA, SHA256 = 1, 8
BINARY, POSITIVE_CERTIFICATION = 0x00, 0x13
CREATED, ISSUER, KEY_FLAGS, FINGERPRINT = 2, 16, 27, 33
PUBLIC_KEY, SIGNATURE, USER_ID = 6, 2, 13
EXPONENT = 65537


def packet(tag, body):
    return bytes([0xC0 | tag, 0xFF]) + struct.pack(">I", len(body)) + body


def subpackets(*pairs):
    joined = b"".join(bytes([len(body) + 1, kind]) + body for kind, body in pairs)
    return struct.pack(">H", len(joined)) + joined


def integer(number):
    return struct.pack(">H", number.bit_length()) + number.to_bytes((number.bit_length() + 7) // 8, "big")


class Key:
    def __init__(self, directory, name):
        self.secret = pathlib.Path(directory, name + ".pem")
        if not self.secret.exists():
            subprocess.run(["openssl", "genrsa", "-out", self.secret, "2048"], check=True, stderr=subprocess.DEVNULL)
        modulus = subprocess.check_output(["openssl", "rsa", "-in", self.secret, "-modulus", "-noout"], text=True)
        self.created = struct.pack(">I", int(self.secret.stat().st_mtime) - 3600)
        self.body = b"\4" + self.created + bytes([RSA]) + integer(int(modulus.split("=")[1], 16)) + integer(EXPONENT)
        self.user = name.encode()
        self.fingerprint = hashlib.sha1(self.framed()).digest()

    def framed(self):
        return b"\x99" + struct.pack(">H", len(self.body)) + self.body

    def signature(self, kind, data, created, *extra):
        hashed = bytes([4, kind, RSA, SHA256]) + subpackets(
            (CREATED, created), (FINGERPRINT, b"\4" + self.fingerprint), *extra
        )
        data += hashed + b"\4\xff" + struct.pack(">I", len(hashed))
        signed = subprocess.check_output(["openssl", "dgst", "-sha256", "-sign", self.secret], input=data)
        body = hashed + subpackets((ISSUER, self.fingerprint[-8:])) + hashlib.sha256(data).digest()[:2]
        return packet(SIGNATURE, body + integer(int.from_bytes(signed, "big")))

    def public(self):
        """What goes into a keyring."""
        certified = self.framed() + b"\xb4" + struct.pack(">I", len(self.user)) + self.user
        certification = self.signature(POSITIVE_CERTIFICATION, certified, self.created, (KEY_FLAGS, b"\3"))
        return packet(PUBLIC_KEY, self.body) + packet(USER_ID, self.user) + certification

    def sign(self, data):
        """A detached signature in ASCII armour."""
        signature = base64.encodebytes(self.signature(BINARY, data, struct.pack(">I", int(time.time())))).decode()
        return f"-----BEGIN PGP SIGNATURE-----\n\n{signature}-----END PGP SIGNATURE-----\n"
