"""Verifies the signatures of checkpoints (docs/reference/proof.md): Ed25519, RFC 8032, section 5.1.7."""

import re
from base64 import b64decode
from hashlib import sha256, sha512

LOG, WITNESS = 1, 4
KEY = re.compile(r"([!-*,-~]+)\+([0-9a-f]{8})\+((?:A[Q-Za-f]|B[A-P])[A-Za-z0-9+/]{42})")
SIGNATURE = {
    LOG: re.compile("[A-Za-z0-9+/]{90}[AEIMQUYcgkosw048]="),
    WITNESS: re.compile("[A-Za-z0-9+/]{101}[AQgw]=="),
}

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)  # of -1
ZERO = (0, 1, 1, 0)  # a point is x/z, y/z, with z and xy/z


def add(one, other):
    x1, y1, z1, t1 = one
    x2, y2, z2, t2 = other
    a, b, c, d = (y1 - x1) * (y2 - x2), (y1 + x1) * (y2 + x2), 2 * D * t1 * t2, 2 * z1 * z2
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(number, point):
    product = ZERO
    for bit in f"{number:b}":
        product = add(product, product)
        if bit == "1":
            product = add(product, point)
    return product


def encode(point):
    x, y, z, _ = point
    inverse = pow(z, -1, P)
    return (y * inverse % P | (x * inverse % P & 1) << 255).to_bytes(32, "little")


def decode(text):
    """Returns the point that 32 bytes encode, or None if they encode none."""
    number = int.from_bytes(text, "little")
    sign, y = number >> 255, number % 2**255
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if x * x % P == square else x * ROOT % P
    x = x if x % 2 == sign else -x % P
    point = (x, y, 1, x * y % P)
    return point if x * x % P == square and encode(point) == text else None


BASE = decode((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def is_weak(point):
    """Whether it is none, or its order divides 8."""
    return point is None or encode(times(8, point)) == encode(ZERO)


def is_signed(key, signature, message):
    """Whether the 64 bytes of a signature are that of a message by a public key of 32 bytes."""
    first, s = signature[:32], int.from_bytes(signature[32:], "little")
    point = decode(key)
    if is_weak(point) or is_weak(decode(first)) or s >= L:
        return False
    k = int.from_bytes(sha512(first + key + message).digest(), "little") % L
    x, y, z, t = times(k, point)
    return encode(add(times(s, BASE), (-x, y, z, -t))) == first


def verify_signature(note, origin, key):
    """Requires the signature of a checkpoint by the key of its log or of a witness.

    A key is `name+id+key`. ValueError says what is wrong.
    """
    found = KEY.fullmatch(key)
    if not found:
        raise ValueError("the key is not name+id+key")
    name, id, (kind, *public_key) = found[1], bytes.fromhex(found[2]), b64decode(found[3])
    of_key = sha256(f"{name}\n".encode() + b64decode(found[3])).digest()
    if of_key[:4] != id:
        raise ValueError(f"the key {name}+{found[2]} does not have its own id")
    body, _, lines = note.partition("\n\n")
    text = f"{body}\n"
    for line in lines.split("\n"):
        dash, signer, base64, *others = line.split(" ") + ["", ""][line.count(" ") :]
        if (dash, signer) != ("\u2014", name) or others or not SIGNATURE[kind].fullmatch(base64):
            continue
        data = b64decode(base64)
        if data[:4] != id or (kind == LOG and name != origin):
            continue
        if kind == WITNESS:
            text = f"cosignature/v1\ntime {int.from_bytes(data[4:12], 'big')}\n{text}"
        if is_signed(bytes(public_key), data[-64:], text.encode()):
            return
        raise ValueError(f"the signature of {name} is not valid: the checkpoint was changed")
    reason = "it belongs to another installation" if kind == LOG else "the witness has not confirmed it"
    raise ValueError(f"the checkpoint is not signed by the key {name}+{found[2]}: {reason}")
