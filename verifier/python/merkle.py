"""Merkle trees (RFC 6962, section 2.1; docs/reference/proof.md)."""

from hashlib import sha256


def leaf_hash(text):
    return sha256(b"\0" + text.encode()).digest()


def node_hash(left, right):
    return sha256(b"\1" + left + right).digest()


class Tree:
    """A Merkle tree (RFC 6962, section 2.1), as its subtrees from left to right."""

    def __init__(self):
        self.size = 0
        self.subtrees = []
        self.ended = False  # the last subtree is not complete, so nothing can follow it

    def add(self, hash, size=1):
        self.size += size
        self.ended = size & (size - 1) != 0
        while self.subtrees and self.subtrees[-1][0] == size:
            hash = node_hash(self.subtrees.pop()[1], hash)
            size *= 2
        self.subtrees.append((size, hash))

    def add_hidden(self, leaves, hashes):
        """Adds a hidden part, and returns whether it is one."""
        end = self.size + leaves
        for number, hash in enumerate(hashes, 1):
            left = end - self.size
            if left <= 0 or self.ended:
                return False
            size = 1 << (left.bit_length() - 1)
            while self.size % size:
                size //= 2
            if number == len(hashes) and self.size % (2 * size) == 0:
                size = left  # the rest of the tree
            self.add(hash, size)
        return self.size == end

    def root(self):
        if not self.subtrees:
            return sha256(b"").digest()
        *others, (_, hash) = self.subtrees
        for _, left in reversed(others):
            hash = node_hash(left, hash)
        return hash
