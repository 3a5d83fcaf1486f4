#!/usr/bin/env python3
"""Verifies a proof of closed days (docs/reference/proof.md). It needs only the standard library."""

import json
import re
import sys
from array import array
from base64 import b64decode
from collections import defaultdict
from datetime import date, datetime, timedelta
from getopt import GetoptError, gnu_getopt
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from merkle import Tree, leaf_hash
from signatures import verify_signature
from texts import opened, text_of

VERSION = "2"
CLOSING_VERSION = "1"
SLICE_US = 900_000_000
HOUR_MS = 3_600_000
# The number of the first account of a batch. Greater ones belong to batches and vouchers.
FIRST_RESERVE = 5_000_000_000

TIME = "([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}Z)"
BASE64 = "[A-Za-z0-9+/]"
LAST_OF_HASH = "[AEIMQUYcgkosw048]="
HASH = f"({BASE64}{{42}}{LAST_OF_HASH})"
HEX = "[0-9a-f]"
ID = f"({HEX}{{8}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{12}})"
COUNT = "([1-9][0-9]{0,9})"
NUMBER = "(0|[1-9][0-9]{0,18})"
ACCOUNT = re.compile("(0|[1-9][0-9]{0,9}) ([A-Z_]+)")
SLICE = re.compile(f"{TIME}[|]{COUNT}(?:[|]({HEX}{{64}}))?")
ROW = re.compile(
    f"{ID}[|]([A-Z_]+)[|]{NUMBER}[|]{NUMBER}[|]([1-9][0-9]{{0,18}})[|]([A-Z]{{3}})[|]{NUMBER}"
    f"[|]{NUMBER}?[|]{ID}?[|]{NUMBER}?[|]{NUMBER}?[|][^|]*[|]"
)
HIDDEN = re.compile(f"{COUNT} ((?:{BASE64}{{4}})*(?:{BASE64}[AQgw]==|{BASE64}{{2}}{LAST_OF_HASH})?)")
DAY = "([0-9]{4}-[0-9]{2}-[0-9]{2})"
CLOSING = re.compile(
    f"([0-9]+)[|]{HASH}[|]{DAY}[|]{TIME}[|]{TIME}[|]([A-Za-z0-9_/+-]+)[|]{NUMBER}[|]{ID}?[|]{ID}?"
    f"[|]{HASH}[|]{HASH}[|]{TIME}"
)
BALANCE = ",".join(f'"{name}":"(0|-?[1-9][0-9]{{0,18}})"' for name in ("opening", "debits", "credits", "closing"))
TOTALS = re.compile(
    r'\{"balances":\[(\{"currency":"[A-Z]{3}","account_kind":"[A-Z_]+",'
    rf'{BALANCE}\}},?)*\],"aggregates":\{{("[a-z_]+":"{HEX}{{64}}",?)*\}},"ages":"{HEX}{{64}}",'
    rf'"checks":\[(\{{"name":"[^"\\]*","differing":\[([^]\s][^]]*)?\]\}},?)*\],"late":\[("{ID}",?)*\]\}}'
)
NOTE = re.compile(rf"([!-*,-~]+)\n([1-9][0-9]{{0,8}})\n{HASH}\n")
PUBLISHED = re.compile(f'\\["scrip closing","({HEX}{{64}})","{DAY}",')


class Refused(Exception):
    """A sentence about what is wrong, and where."""


def check(holds, sentence):
    if not holds:
        raise Refused(sentence)


def count(number, noun):
    return f"{number} {noun}{'' if number == 1 else 's'}"


def day_after(day):
    return (date.fromisoformat(day) + timedelta(1)).isoformat()


def us_of(time):
    """Microseconds since 1970 of a time such as 2026-03-02T09:00:00.000Z."""
    try:
        since = datetime.strptime(time, "%Y-%m-%dT%H:%M:%S.%fZ") - datetime(1970, 1, 1)
    except ValueError:
        raise Refused(f"{time} is no time") from None
    check(since >= timedelta(0), f"{time} is no time")
    return since // timedelta(microseconds=1)


class Slice:
    def __init__(self, start, rows, root):
        self.start, self.name, self.starts_us = start, f"slice {start}", us_of(start)
        self.rows = int(rows)
        self.root = root and bytes.fromhex(root)
        self.tree = Tree()
        self.last = (0, "")  # the time and the id of the last row


class Day:
    """What the lines of a day add up to."""

    def __init__(self):
        self.tree = Tree()
        self.rows = 0
        self.first_id = self.last_id = self.first_slice = self.totals = None
        self.late = set()
        self.sums = {}  # [debits, credits] by currency and account kind


class Closed(NamedTuple):
    day: str
    ends_at: str
    hash: bytes


class Verifier:
    def __init__(self):
        self.number = 0
        self.header = None
        self.kinds = {}
        self.slice = None
        self.slice_end_us = 0
        self.place = "before the first slice"  # the name of the last slice
        self.ids, self.older_ids, self.ids_since_us = set(), set(), 0
        # The ends of all ids, by their hour: a late row may repeat a row of any day.
        self.ends = defaultdict(lambda: array("Q"))
        self.day = Day()
        self.days = self.rows = self.late_rows = 0
        self.closings = []
        self.last = None  # the last closing
        self.balances = {}

    def line(self, text):
        self.number += 1
        name, _, rest = text.partition(" ")
        if self.header is None:
            self.begin(text)
        elif name == "closing":
            self.close(rest)
        elif self.day.totals is not None:
            self.match(None)
        elif name == "row":
            self.add_row(rest)
        elif name == "slice":
            self.begin_slice(rest)
        elif name == "-":
            self.add_hidden(rest)
        elif name == "account":
            account, kind = self.match(ACCOUNT, rest)
            if not self.shows_all or int(account) >= FIRST_RESERVE:
                self.match(None)
            check(account not in self.kinds, f"line {self.number}: account {account} is named twice")
            self.kinds[account] = kind
        elif name == "totals" and self.shows_all:
            self.day.totals = rest
        else:
            self.match(None)
        if self.slice and self.slice.tree.size >= self.slice.rows:
            self.end_slice()

    def match(self, pattern, text=""):
        found = pattern and pattern.fullmatch(text)
        check(found, f"line {self.number} is cut off, or is no line of a proof")
        return found.groups()

    def begin(self, text):
        is_proof = text.startswith("scrip proof ")
        check(is_proof, 'the file is no proof: its first line does not begin with "scrip proof"')
        version, *others = text.split(" ")[2:]
        check(version == VERSION, f"the proof has version {version}, and this program verifies {VERSION}")
        check(len(others) == 3 and others[0] in ("all", "some"), "line 1 is cut off")
        shows, self.first_day, self.to = self.header = others
        self.shows_all = shows == "all"

    def require_no_slice(self):
        if self.slice:
            name, rows, found = self.slice.name, self.slice.rows, self.slice.tree.size
            raise Refused(f"{name}: {count(rows, 'row')} closed, but {count(found, 'row')} are in the file")

    def begin_slice(self, text):
        self.require_no_slice()
        slice = self.slice = Slice(*self.match(SLICE, text))
        has_root = slice.root is not None
        check(has_root == self.shows_all, f"line {self.number} is cut off, or is no line of a proof")
        check(slice.starts_us % SLICE_US == 0, f"{slice.name} does not begin at a quarter of an hour")
        check(slice.starts_us >= self.slice_end_us, f"{slice.name} is there twice, or not in its place")
        self.slice_end_us = slice.starts_us + SLICE_US
        self.place = slice.name
        self.day.first_slice = self.day.first_slice or slice
        if slice.starts_us - self.ids_since_us > 9 * SLICE_US:
            self.older_ids, self.ids, self.ids_since_us = self.ids, set(), slice.starts_us

    def add_row(self, text):
        slice, day = self.slice, self.day
        check(slice, f"{self.place}: a row was added")
        found = ROW.match(text)
        check(found, f"{slice.name}: line {self.number} is not the text of a row")
        id, kind, debit, credit, amount, currency, time = found.groups()[:7]
        where = f"{slice.name}, row {id} ({kind})"
        check(not slice.tree.ended, f"{where} was added")
        slice.tree.add(leaf_hash(text))
        us = int(time)
        id_ms = int(id[:8] + id[9:13], 16)
        check(abs(id_ms - us // 1000) <= HOUR_MS, f"{where} has the id of another time")
        is_late, hour, end = us < slice.starts_us, id_ms // HOUR_MS, int(id[24:], 16)
        ends = self.ends[hour]
        if is_late and isinstance(ends, array):
            ends = self.ends[hour] = set(ends)  # takes more memory, and is searched quickly
        is_new = id not in self.ids and id not in self.older_ids and not (is_late and end in ends)
        check(is_new, f"{where} is there twice")
        self.ids.add(id)
        (ends.append if isinstance(ends, array) else ends.add)(end)
        if is_late:
            day.late.add(id)
        check(us < slice.starts_us + SLICE_US, f"{where} is of a later time: it was moved")
        check((us, id) > slice.last, f"{where} is not in its place")
        slice.last = (us, id)
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
        if number >= FIRST_RESERVE:
            return "RESERVE"
        return self.kinds.get(account, f"account {account}")

    def add_hidden(self, text):
        check(not self.shows_all, f"line {self.number}: rows are hidden in a proof that shows all")
        leaves, base64 = self.match(HIDDEN, text)
        hashes = b64decode(base64, validate=True)
        parts = [hashes[at : at + 32] for at in range(0, len(hashes), 32)]
        tree = self.slice.tree if self.slice else self.day.tree
        in_place = len(hashes) % 32 == 0 and tree.add_hidden(int(leaves), parts)
        where = f"line {self.number}, {self.place}"
        check(in_place, f"{where}: a hidden part is cut off, or not in its place")

    def end_slice(self):
        slice, self.slice = self.slice, None
        check(slice.tree.size == slice.rows, f"{slice.name} has more rows than were closed")
        root = slice.tree.root()
        check(slice.root in (None, root), f"{slice.name}: a row is not the one that was closed")
        check(not self.day.tree.ended, f"{slice.name} was added")
        self.day.tree.add(leaf_hash(f"{slice.start}|{slice.rows}|{root.hex()}"))
        self.day.rows += slice.rows

    def close(self, text):
        self.require_no_slice()
        version, before, day, starts_at, ends_at, zone, rows, *others = self.match(CLOSING, text)
        first_id, last_id, root, totals_hash, closed_at = others
        before, root, totals_hash = (b64decode(each) for each in (before, root, totals_hash))
        found, last = self.day, self.last
        is_known = version == CLOSING_VERSION
        check(is_known, f"{day} was closed by version {version}, and this program verifies {CLOSING_VERSION}")
        is_root = found.tree.root() == root
        check(is_root, f"{day}: a row or a slice is not the one that was closed, or is missing")
        if last:
            follows = last.hash == before and day_after(last.day) == day
            check(follows, f"{day} does not follow the day before it")
            check(last.ends_at == starts_at, f"{day} does not begin when the day before it ends")
        else:
            check(day == self.first_day, f"the first day is {day}, not {self.first_day}")
        us_of(closed_at)
        check(us_of(starts_at) < us_of(ends_at), f"{day} ends before it begins")
        if found.first_slice:
            in_day = found.first_slice.starts_us >= us_of(starts_at)
            check(in_day, f"{day} contains a slice of an earlier day")
        check(self.slice_end_us <= us_of(ends_at), f"{day} contains a slice of a later day")
        if self.shows_all:
            check(rows == str(found.rows), f"{day} was closed with {rows} rows, not {found.rows}")
            ends = (first_id, last_id) == (found.first_id, found.last_id)
            check(ends, f"{day} was closed with another first or last row")
            check(found.totals is not None, f"{day}: the totals are missing")
            is_same = sha256(found.totals.encode()).digest() == totals_hash
            check(is_same, f"{day}: the totals are not those that were closed")
            check(TOTALS.fullmatch(found.totals), f"{day}: the totals are not in their form")
            self.compare_totals(day, json.loads(found.totals))
        values = ["scrip closing", before.hex(), day, starts_at, ends_at, zone, rows, first_id, last_id]
        values += [root.hex(), totals_hash.hex(), int(version), closed_at]
        self.closings.append(json.dumps(values, separators=(",", ":"), ensure_ascii=False))
        self.last = Closed(day, ends_at, leaf_hash(self.closings[-1]))
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
            check(key not in after, f"{day}: the totals have {name} twice")
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
        whole = self.last and not self.slice and not self.day.tree.size and self.day.totals is None
        whole = whole and day_after(self.last.day) == self.to
        check(whole, f"the file is cut off: it ends before the closing of the day before {self.to}")
        shown = count(self.rows, "row") + ("" if self.shows_all else " shown, others hidden")
        late = f", of which {self.late_rows} late" if self.late_rows else ""
        day, hash = self.last.day, self.last.hash.hex()
        return f"verified: {count(self.days, 'closed day')} up to {day}, {shown}{late}; closing hash {hash}"


def compare(proved, folder, key):
    """Compares closings with published ones, and these with their checkpoint (docs/reference/proof.md)."""
    note, published = (text_of(Path(folder, name)) for name in ("checkpoint", "closings"))
    body = note[: note.find("\n\n") + 1]
    found = NOTE.fullmatch(body)
    check(found, "the checkpoint is cut off, or is none")
    origin, size, root = found[1], int(found[2]), b64decode(found[3])
    if key:
        verify_signature(note, origin, key)
    texts = [text for text in published.split("\n") if text][:size]
    check(len(texts) == size, f"{origin}: the checkpoint has {size} days, and fewer are published")
    tree, hashes = Tree(), [leaf_hash(text) for text in texts]
    for each in hashes:
        tree.add(each)
    check(tree.root() == root, f"{origin}: the published closings are not those of the checkpoint")
    is_own = origin == f"scrip/{hashes[0].hex()[:16]}"
    sentence = f"{origin} is not the origin of the published closings: they belong to another installation"
    check(is_own, sentence)
    by_day, last = {}, ""
    for at, text in enumerate(texts):
        found = PUBLISHED.match(text)
        check(found, f"line {at + 1} of what {origin} published is no closing")
        previous, day = found.groups()
        follows = day > last and previous == (hashes[at - 1].hex() if at else "0" * 64)
        check(follows, f"{day} does not follow the day before it in what {origin} published")
        by_day[day], last = text, day
    for day, text in ((json.loads(text)[2], text) for text in proved):
        check(day in by_day, f"{day} is not in the checkpoint of {origin}")
        is_same = by_day[day] == text
        check(is_same, f"{day} is not the day that {origin} published: there are two histories")


def main():
    try:
        options, files = gnu_getopt(sys.argv[1:], "", ["against=", "key="])
    except GetoptError:
        options, files = [], []
    folder, key = map(dict(options).get, ("--against", "--key"))
    is_call = len(files) == 1 and (folder or not key)
    check(is_call, "usage: verify.py FILE [--against DIR] [--key NAME+ID+KEY]")
    verifier = Verifier()
    with opened(files[0]) as file:
        for line in file:
            is_whole = line.endswith("\n")
            check(is_whole, f"the file is cut off: line {verifier.number + 1} has no line feed at its end")
            verifier.line(line[:-1])
    sentence = verifier.end()
    if folder:
        compare(verifier.closings, folder, key)
    print(sentence)
    if folder and not key:
        print("no signature was verified: no key was given")


if __name__ == "__main__":
    try:
        main()
    except (Refused, ValueError, OverflowError) as error:
        sys.exit(f"refused: {error}")
