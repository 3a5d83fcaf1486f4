#!/usr/bin/env python3
"""Verifies a proof of closed days (docs/reference/proof.md). It needs only the standard library."""

import json
import sys
from datetime import date, datetime, timedelta
from hashlib import sha256

VERSION = 1
SLICE_US = 900_000_000
HOUR_MS = 3_600_000


class Refused(Exception):
    """A sentence about what is wrong, and where."""


def check(holds, sentence):
    if not holds:
        raise Refused(sentence)


def leaf_hash(text):
    return sha256(b"\0" + text.encode()).digest()


def node_hash(left, right):
    return sha256(b"\1" + left + right).digest()


class Tree:
    """A Merkle tree (RFC 6962, section 2.1), as its complete subtrees from left to right."""

    def __init__(self):
        self.size = 0
        self.subtrees = []

    def add(self, hash, size=1):
        self.size += size
        while self.subtrees and self.subtrees[-1][0] == size:
            hash = node_hash(self.subtrees.pop()[1], hash)
            size *= 2
        self.subtrees.append((size, hash))

    def root(self):
        if not self.subtrees:
            return sha256(b"").hexdigest()
        *others, (_, hash) = self.subtrees
        for _, left in reversed(others):
            hash = node_hash(left, hash)
        return hash.hex()


def count(number, noun):
    return f"{number} {noun}{'' if number == 1 else 's'}"


def us_of(time):
    """Microseconds since 1970 of a time such as 2026-03-02T09:00:00.000Z."""
    since = datetime.strptime(time, "%Y-%m-%dT%H:%M:%S.%fZ") - datetime(1970, 1, 1)
    return since // timedelta(microseconds=1)


class Slice:
    def __init__(self, text):
        start, rows, self.root = text.split("|")
        self.text, self.name, self.starts_us = text, f"slice {start}", us_of(start)
        self.rows = int(rows)
        self.tree = Tree()


class Day:
    """What the lines of a day add up to."""

    def __init__(self):
        self.tree = Tree()
        self.rows = 0
        self.first_id = self.last_id = None
        self.late = set()
        self.sums = {}  # [debits, credits] by currency and account kind


class Verifier:
    def __init__(self):
        self.number = 0
        self.header = None
        self.kinds = {}
        self.slice = None
        self.slice_end_us = 0
        self.place = "before the first slice"  # the name of the last slice
        self.ids, self.older_ids, self.ids_since_us = set(), set(), 0
        self.day = Day()
        self.days = self.rows = self.late_rows = 0
        self.last = None  # day, end and hash of the last closing
        self.balances = {}

    @property
    def shows_all(self):
        return self.header["shows"] != "some"

    def line(self, text):
        self.number += 1
        try:
            line = json.loads(text)
        except ValueError:
            raise Refused(f"line {self.number} is cut off or is no JSON object") from None
        if self.header is None:
            self.begin(line)
        elif "row" in line:
            self.add_row(line["row"])
        elif "slice" in line:
            self.begin_slice(line["slice"])
        elif "hidden" in line:
            self.add_hidden(bytes.fromhex(line["hidden"]), line["size"])
        elif "account" in line:
            self.kinds[line["account"]] = line["kind"]
        elif "closing" in line:
            self.close(line["closing"], line.get("totals"))
        else:
            raise Refused(f"line {self.number} is not a line of a proof")
        if self.slice and self.slice.tree.size >= self.slice.rows:
            self.end_slice()

    def begin(self, line):
        check("proof" in line, "the file is no proof: its first line has no version")
        check(line["proof"] == VERSION, f"the proof has version {line['proof']}, not {VERSION}")
        self.header = line

    def require_no_slice(self):
        if self.slice:
            name, rows, found = self.slice.name, self.slice.rows, self.slice.tree.size
            raise Refused(f"{name}: {count(rows, 'row')} closed, but {count(found, 'row')} are in the file")

    def begin_slice(self, text):
        self.require_no_slice()
        slice = self.slice = Slice(text)
        check(slice.starts_us % SLICE_US == 0, f"{slice.name} does not begin at a quarter of an hour")
        check(slice.starts_us >= self.slice_end_us, f"{slice.name} is there twice, or not in its place")
        self.slice_end_us = slice.starts_us + SLICE_US
        self.place = slice.name
        if slice.starts_us - self.ids_since_us > 9 * SLICE_US:
            self.older_ids, self.ids, self.ids_since_us = self.ids, set(), slice.starts_us

    def add_row(self, text):
        slice, day = self.slice, self.day
        check(slice, f"{self.place}: a row was added")
        id, kind, debit, credit, amount, currency, time, *_ = text.split("|", 12)
        where = f"{slice.name}, row {id} ({kind})"
        check(amount.isdecimal() and int(amount) > 0, f"{where} has no positive amount")
        slice.tree.add(leaf_hash(text))
        us = int(time)
        id_ms = int(id[:8] + id[9:13], 16)
        check(abs(id_ms - us // 1000) <= HOUR_MS, f"{where} has the id of another time")
        check(id not in self.ids and id not in self.older_ids, f"{where} is there twice")
        self.ids.add(id)
        check(us < slice.starts_us + SLICE_US, f"{where} is of a later time: it was moved")
        if us < slice.starts_us:
            day.late.add(id)
        day.first_id = day.first_id or id
        day.last_id = id
        self.rows += 1
        for side, account in enumerate((debit, credit)):
            key = (currency, self.kind_of(account))
            day.sums.setdefault(key, [0, 0])[side] += int(amount)

    def kind_of(self, account):
        number = int(account)
        if number > 10_000_000_000:
            return "VOUCHER"
        if number >= 5_000_000_000:
            return "RESERVE"
        return self.kinds.get(account, f"account {account}")

    def add_hidden(self, hash, size):
        check(not self.shows_all, f"line {self.number}: rows are hidden in a proof that shows all")
        tree = self.slice.tree if self.slice else self.day.tree
        is_power = isinstance(size, int) and size > 0 and size & (size - 1) == 0
        in_place = len(hash) == 32 and is_power and tree.size % size == 0
        check(in_place, f"line {self.number}: a hidden part is not in its place")
        tree.add(hash, size)

    def end_slice(self):
        slice, self.slice = self.slice, None
        check(slice.tree.size == slice.rows, f"{slice.name} has more rows than were closed")
        check(slice.tree.root() == slice.root, f"{slice.name}: a row is not the one that was closed")
        self.day.tree.add(leaf_hash(slice.text))
        self.day.rows += slice.rows

    def close(self, text, totals):
        self.require_no_slice()
        columns = json.loads(text)
        check(columns[0] == "scrip closing", f"line {self.number} is not the text of a closing")
        _, before, day, starts_at, ends_at, _, rows, *others = columns
        first_id, last_id, root, totals_hash, version, _ = others
        found = self.day
        check(version == VERSION, f"{day} was closed by version {version}, not {VERSION}")
        check(found.tree.root() == root, f"{day}: a slice is not the one that was closed, or is missing")
        if self.last:
            _, last_end, last_hash = self.last
            check(last_hash == before, f"{day} does not follow the day before it")
            check(last_end == starts_at, f"{day} does not begin when the day before it ends")
        else:
            check(day == self.header["from"], f"the first day is {day}, not {self.header['from']}")
        check(self.slice_end_us <= us_of(ends_at), f"{day} contains a slice of a later day")
        if self.shows_all:
            check(rows == str(found.rows), f"{day} was closed with {rows} rows, not {found.rows}")
            ends = (first_id, last_id) == (found.first_id, found.last_id)
            check(ends, f"{day} was closed with another first or last row")
            check(totals is not None, f"{day}: the totals are missing")
            is_same = sha256(totals.encode()).hexdigest() == totals_hash
            check(is_same, f"{day}: the totals are not those that were closed")
            self.compare_totals(day, json.loads(totals))
        self.last = (day, ends_at, leaf_hash(text).hex())
        self.days += 1
        self.late_rows += len(found.late)
        self.day = Day()

    def compare_totals(self, day, totals):
        for id in self.day.late - set(totals["late"]):
            raise Refused(f"{day}: row {id} was moved here from another time")
        for each in totals["checks"]:
            check(not each["differing"], f"{day} was closed although a check had failed: {each['name']}")
        after, in_all = {}, {}
        for each in totals["balances"]:
            key = (each["currency"], each["account_kind"])
            name = " ".join(key)
            amounts = (int(each[name]) for name in ("opening", "debits", "credits", "closing"))
            opening, debits, credits, closing = amounts
            found = self.day.sums.pop(key, [0, 0])
            check(found == [debits, credits], f"{day}: the rows do not add up to the totals of {name}")
            opened = self.days == 0 or self.balances.pop(key, 0) == opening
            check(opened, f"{day}: {name} does not open with what it closed with the day before")
            check(opening + credits - debits == closing, f"{day}: the closing balance of {name} is wrong")
            after[key] = closing
            in_all[key[0]] = in_all.get(key[0], 0) + closing
        for currency, sum in in_all.items():
            check(sum == 0, f"{day}: the balances in {currency} do not add up to 0")
        for key in self.day.sums:
            raise Refused(f"{day}: the totals lack {' '.join(key)}")
        for key, balance in self.balances.items():
            check(balance == 0, f"{day}: the balance of {' '.join(key)} is lost")
        self.balances = after

    def end(self):
        check(self.header, "the file is empty")
        to = self.header["to"]
        whole = self.last and not self.slice and not self.day.tree.size
        whole = whole and date.fromisoformat(self.last[0]) + timedelta(1) == date.fromisoformat(to)
        check(whole, f"the file is cut off: it ends before the closing of the day before {to}")
        shown = count(self.rows, "row") + ("" if self.shows_all else " shown, others hidden")
        late = f", of which {self.late_rows} late" if self.late_rows else ""
        day, _, hash = self.last
        return f"verified: {count(self.days, 'closed day')} up to {day}, {shown}{late}; closing hash {hash}"


def main():
    if len(sys.argv) != 2:
        raise Refused("usage: verify.py FILE")
    verifier = Verifier()
    with open(sys.argv[1], encoding="utf-8", newline="\n") as file:
        for line in file:
            verifier.line(line)
    print(verifier.end())


if __name__ == "__main__":
    try:
        main()
    except (Refused, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        sys.exit(f"refused: {error}")
