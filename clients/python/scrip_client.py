"""The merchant's client of Scrip, a prepaid voucher service: one file, standard library only.

    from decimal import Decimal
    from scrip_client import Scrip, ScripError, UnknownOutcomeError

    scrip = Scrip("https://vouchers.example.com", key_id, secret, variant="b")
    payment = scrip.redeem("482913057641", "0731", Decimal("10.50"), reference="order-10071")

Calls that have an effect carry a reference and are repeated under it until there is a response or the time
is over, so they are safe to repeat. A call whose outcome stays unknown ends with an UnknownOutcomeError.
Amounts are exact: Decimal or int, in major units. A client may be used by several threads.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import http.client
import json
import os
import random
import re
import ssl
import threading
import time
import unicodedata
import urllib.parse
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import Any, Generic, Literal, Protocol, TypeVar

__all__ = [
    "Balance",
    "Batch",
    "DamagedStoreError",
    "FileStore",
    "PendingCall",
    "PendingStore",
    "Recovered",
    "RedemptionUpdate",
    "Scrip",
    "ScripError",
    "Transaction",
    "Undone",
    "UnknownOutcomeError",
    "Voucher",
]
__version__ = "0.1.0"

Variant = Literal["a", "b"]
Amount = Decimal | int
T = TypeVar("T")

PREFIXES: Mapping[str, str] = {"a": "/merchant-client/v2", "b": "/api/v2"}

#: The name of each status code, to decide by. The names are those of the TypeScript client.
STATUS_CODES: Mapping[str, str] = {
    "01": "unauthorized",
    "03": "accessDenied",
    "04": "merchantSuspended",
    "13": "invalidAmount",
    "14": "invalidVoucher",
    "15": "invalidProduct",
    "16": "invalidQuantity",
    "17": "invalidExpiryDate",
    "18": "invalidReference",
    "30": "invalidRequest",
    "40": "voucherNotActive",
    "41": "voucherAlreadyActivated",
    "42": "voucherAlreadyRedeemed",
    "43": "voucherBlocked",
    "44": "voucherCanceled",
    "47": "voucherNotAccepted",
    "50": "insufficientMerchantBalance",
    "51": "insufficientBalance",
    "54": "voucherExpired",
    "55": "invalidPin",
    "58": "redemptionAlreadyUpdated",
    "60": "notFound",
    "61": "amountOutsideLimits",
    "75": "pinLocked",
    "91": "serviceUnavailable",
    "94": "referenceAlreadyUsed",
    "96": "internalError",
    "97": "tooManyRequests",
    "98": "unsupportedRequest",
    "99": "notFound",
}


@dataclass(frozen=True)
class Transaction:
    transaction_id: str
    #: ACTIVATION, REDEMPTION or REDEMPTION_REVERSAL
    transaction_type: str
    amount: Decimal
    timestamp: str | None
    reference: str | None
    #: Always masked.
    voucher_code: str
    serial_number: str
    refund_status: str | None
    note: str | None
    #: Whether an earlier copy of the request had the effect.
    replayed: bool = False
    #: The service's id of the request, for its operator.
    request_id: str | None = None
    #: The balance afterwards, if it was asked for and could be read.
    balance: Balance | None = None
    #: After redeem_up_to: what is still to be paid in another way.
    remaining: Decimal | None = None


@dataclass(frozen=True)
class Balance:
    serial_number: str
    voucher_code: str
    balance: Decimal
    #: What can be redeemed now.
    usable_amount: Decimal
    #: The value at activation; None before it, and in variant B.
    value: Decimal | None
    transactions: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Voucher:
    serial_number: str
    code: str = field(repr=False)
    pin: str | None = field(repr=False)


@dataclass(frozen=True)
class Batch:
    reference: str
    transaction_id: str
    #: PROCESSING, COMPLETED or CANCELED
    status: str
    expiry_date: str
    value: Decimal | None
    #: Empty unless the batch is completed.
    vouchers: tuple[Voucher, ...]
    replayed: bool = False
    request_id: str | None = None


@dataclass(frozen=True)
class RedemptionUpdate:
    original_transaction: Transaction
    cancellation_transaction: Transaction
    #: The redemption in force; None after a full reversal.
    new_transaction: Transaction | None
    original_amount: Decimal
    new_amount: Decimal
    reference: str
    replayed: bool = False
    request_id: str | None = None


@dataclass(frozen=True)
class Undone:
    """In each case, no money is taken under the reference any more."""

    #: reversed, already-reversed, or given-up: it was not booked, and never will be
    outcome: str
    reference: str
    transaction_id: str | None
    reversal_id: str | None
    amount: Decimal | None
    voucher_code: str | None
    request_id: str | None = None


class ScripError(Exception):
    """A call that did not succeed. It holds no code, PIN or secret. Decide by `code`."""

    def __init__(
        self,
        operation: str,
        code: str,
        detail: str = "",
        *,
        status_code: str | None = None,
        http_status: int | None = None,
        is_retryable: bool = False,
        request_id: str | None = None,
        reference: str | None = None,
        field_errors: tuple[Mapping[str, str], ...] = (),
        retry_after: float | None = None,
        update: RedemptionUpdate | None = None,
    ) -> None:
        status = f" ({status_code})" if status_code else ""
        super().__init__(f"{operation}: {code}{status}{': ' if detail else ''}{detail}")
        self.operation = operation
        #: The name of the error, such as `insufficientBalance`.
        self.code = code
        #: The status code of the interface; None where the client itself found the error.
        self.status_code = status_code
        self.http_status = http_status
        #: Whether the same call, with the same reference, may succeed later.
        self.is_retryable = is_retryable
        self.request_id = request_id
        self.reference = reference
        self.field_errors = field_errors
        #: How many seconds the service asked to wait before the next attempt.
        self.retry_after = retry_after
        #: With `redemptionAlreadyUpdated`: the result of the first update.
        self.update = update


class UnknownOutcomeError(ScripError, Generic[T]):
    """There was no response: the request had its effect once, or not at all.

    Do not ask the customer to pay again before that is found out. After a restart, the same call with the
    same reference finds it out.
    """

    def __init__(self, last: ScripError, resolve: Callable[[float | None], T]) -> None:
        detail = f"whether it had its effect is not known (last: {last})"
        super().__init__(
            last.operation,
            "unknownOutcome",
            detail,
            http_status=last.http_status,
            is_retryable=True,
            request_id=last.request_id,
            reference=last.reference,
            retry_after=last.retry_after,
        )
        self.last = last
        self._resolve = resolve

    def resolve(self, *, deadline: float | None = None) -> T:
        """Send the same request again under the same reference: it is done once, or refused."""
        return self._resolve(deadline)


class DamagedStoreError(Exception):
    """Some pending calls cannot be read, so their outcome is not known. The others are in `calls`."""

    def __init__(self, message: str, calls: list[PendingCall]) -> None:
        super().__init__(message)
        self.calls = calls


@dataclass(frozen=True)
class PendingCall:
    """A call that was begun. It holds no code, PIN or secret."""

    #: generate, activate, redeem, updateRedemption or reverseRedemption
    operation: str
    reference: str
    base_url: str
    variant: str
    started_at: str
    #: The amount of a redemption or an update, in major units; None for other calls.
    amount: Decimal | None
    #: The request, which is sent again; None for one with a code and a PIN, which is only looked up.
    body: Mapping[str, Any] | None

    @property
    def key(self) -> str:
        return f"{self.operation} {self.reference}"


class PendingStore(Protocol):
    """Keeps pending calls. A call is sent after `put` has returned, so it must be on the disk by then."""

    def put(self, call: PendingCall) -> None: ...
    def delete(self, call: PendingCall) -> None: ...
    def list_calls(self) -> list[PendingCall]: ...


@dataclass(frozen=True)
class Recovered:
    """What became of a pending call."""

    call: PendingCall
    #: done; not-done: it had no effect and will have none; unknown: it is still kept
    outcome: str
    result: Transaction | Batch | RedemptionUpdate | None = None
    error: ScripError | None = None


class FileStore:
    """Keeps pending calls in a folder, a file for each, in the format of the TypeScript client.

    The folder belongs to one merchant and one process. A call is on the disk before it is sent, and its file
    is never half written. A file that was changed or damaged is reported by `recover`, and stays until you
    remove it.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = os.fspath(folder)

    def put(self, call: PendingCall) -> None:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        path = self._path(call)
        unfinished = f"{path}.{uuid.uuid4()}"
        fields = {
            "operation": call.operation,
            "reference": call.reference,
            "baseUrl": call.base_url,
            "variant": call.variant,
            "startedAt": call.started_at,
            "amount": None if call.amount is None else _number(call.amount),
            "body": call.body,
        }
        text = json.dumps(fields, ensure_ascii=False)
        handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(f"{_sha256(text)} {text}\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
        self._sync_folder()

    def delete(self, call: PendingCall) -> None:
        # A call that comes back after a power failure is only recovered once more: no need to sync.
        with suppress(FileNotFoundError):
            os.unlink(self._path(call))

    def list_calls(self) -> list[PendingCall]:
        """Every call. Raises DamagedStoreError rather than leave one out."""
        calls: list[PendingCall] = []
        damaged: list[str] = []
        for name in sorted(os.listdir(self._folder)) if os.path.isdir(self._folder) else []:
            path = os.path.join(self._folder, name)
            if re.fullmatch(r"[0-9a-f]{64}\.json\.[0-9a-f-]{36}", name):
                # It was being written when its process ended, so its call was not sent.
                os.unlink(path)
            if not re.fullmatch(r"[0-9a-f]{64}\.json", name):
                continue
            call = self._read(path)
            if call is not None and self._path(call) == path:
                calls.append(call)
            else:
                damaged.append(path)
        if damaged:
            raise DamagedStoreError(f"these pending calls cannot be read: {', '.join(damaged)}", calls)
        return calls

    def _path(self, call: PendingCall) -> str:
        return os.path.join(self._folder, f"{_sha256(call.key)}.json")

    def _sync_folder(self) -> None:
        """Without this, a file that was renamed may be absent after a power failure."""
        if os.name == "nt":
            return
        handle = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    @staticmethod
    def _read(path: str) -> PendingCall | None:
        with open(path, "rb") as file:
            content = file.read()
        try:
            checksum, text = content.decode("utf-8").removesuffix("\n").split(" ", 1)
            if _sha256(text) != checksum:
                return None
            found = json.loads(text, parse_float=Decimal)
            amount = None if found["amount"] is None else Decimal(found["amount"])
            body = None if found["body"] is None else json.loads(json.dumps(found["body"], default=float))
            names = (
                found["operation"],
                found["reference"],
                found["baseUrl"],
                found["variant"],
                found["startedAt"],
            )
            return PendingCall(*names, amount, body)
        except (UnicodeDecodeError, ValueError, KeyError, TypeError):
            return None


class _Failure(Exception):
    """Why one attempt failed."""

    def __init__(self, error: ScripError, *, may_have_happened: bool, again: bool) -> None:
        super().__init__(str(error))
        self.error = error
        #: Whether the attempt may have had its effect all the same.
        self.may_have_happened = may_have_happened
        #: Whether another attempt is worthwhile.
        self.again = again


@dataclass(frozen=True)
class _Answer:
    data: Any
    replayed: bool
    request_id: str | None


@dataclass(frozen=True)
class _Call(Generic[T]):
    """A call of the interface."""

    operation: str
    method: str
    #: Below the base address.
    path: str
    body: Mapping[str, Any] | None
    authorization: str
    #: Reads the result of an answer; raises _Malformed.
    take: Callable[[_Answer], T]
    reference: str | None = None
    #: Whether a refusal proves that no earlier copy had its effect; None for a call without an effect.
    proves: Callable[[ScripError], bool] | None = None
    #: The result behind a refusal that an earlier copy of the request caused.
    recover: Callable[[ScripError], T | None] | None = None
    #: Looks the effect up, where a refusal proves nothing.
    lookup: Callable[[], T | None] | None = None
    #: The part that the store keeps while the outcome is unknown.
    pending: PendingCall | None = None


class _Malformed(Exception):
    """A response that is not one of the interface. Names a field, never its value."""


#: Refusals after the service has looked for the reference. Others prove nothing of an earlier copy.
_AFTER_REPLAY = frozenset(["94", "14", "55", "44", "43", "54", "40", "41", "47", "42", "51", "50"])
_DELAY_MAX = 4.0
_BODY_MAX_BYTES = 1 << 30
#: The status codes for problems of the portal that are no refusal.
_BY_PROBLEM = {
    "unauthorized": "01",
    "forbidden": "03",
    "step-up-required": "03",
    "not-found": "03",
    "invalid": "30",
    "too-many-requests": "97",
}
_BY_HTTP_STATUS = {400: "30", 401: "01", 403: "03", 404: "60"}


def _proves_no_effect(error: ScripError) -> bool:
    return error.code == "undone" or error.status_code in _AFTER_REPLAY


def _proves_no_update(error: ScripError) -> bool:
    return error.status_code in ("60", "51") or (error.status_code == "58" and error.update is not None)


def _proves_no_undoing(error: ScripError) -> bool:
    return error.status_code in ("58", "44", "18")


class Scrip:
    """A merchant's client.

    `variant` is "a" (/merchant-client/v2) or "b" (/api/v2). `portal_token` is a token of the merchant's
    portal with the role `cashier` or `owner`, for `undo`. `pending` keeps calls whose outcome is not known,
    for `recover`. Times are in seconds.
    """

    def __init__(
        self,
        base_url: str,
        key_id: str,
        secret: str,
        variant: Variant,
        *,
        portal_token: str | None = None,
        pending: PendingStore | None = None,
        deadline: float = 30.0,
        attempt_timeout: float = 10.0,
        max_attempts: int = 10,
        retry_delay: float = 0.25,
        ssl_context: ssl.SSLContext | None = None,
        on_retry: Callable[[ScripError, float], None] | None = None,
    ) -> None:
        url = urllib.parse.urlsplit(base_url)
        if (
            url.scheme not in ("http", "https")
            or not url.hostname
            or url.username
            or url.query
            or url.fragment
        ):
            raise ValueError("base_url must be an http:// or https:// address, without credentials and query")
        if variant not in PREFIXES:
            raise ValueError("variant must be 'a' or 'b'")
        for name, value in (("key_id", key_id), ("secret", secret)):
            if not isinstance(value, str) or not value or (name == "key_id" and ":" in value):
                raise ValueError(f"{name} is missing or has the wrong form")
        times = {"deadline": deadline, "attempt_timeout": attempt_timeout, "retry_delay": retry_delay}
        for name, number in (times | {"max_attempts": max_attempts}).items():
            if not number > 0:
                raise ValueError(f"{name} must be above zero")
        self.variant = variant
        self._base_url = base_url.rstrip("/")
        self._url = url
        self._key_id = key_id
        credentials = base64.b64encode(f"{key_id}:{secret}".encode()).decode()
        self._authorization = f"Basic {credentials}"
        self._portal_token = portal_token
        self._confidential = tuple(text for text in (secret, credentials, portal_token) if text)
        self._deadline = deadline
        self._attempt_timeout = attempt_timeout
        self._max_attempts = max_attempts
        self._retry_delay = retry_delay
        self._ssl_context = ssl_context
        self._on_retry = on_retry
        self._pending = None if pending is None else _Pending(pending)
        self._undone: dict[str, None] = {}

    def __repr__(self) -> str:
        return f"Scrip({self._base_url!r}, variant {self.variant})"

    # Vouchers

    def generate(
        self,
        *,
        quantity: int,
        value: Amount | None = None,
        product_code: str | None = None,
        expiry_date: str | None = None,
        reference: str | None = None,
        deadline: float | None = None,
    ) -> Batch:
        """Generate a batch. Up to 10 vouchers are in the result; wait for a larger batch by `wait_for_batch`.

        Variant A takes `product_code` and needs a value, variant B takes `expiry_date`.
        """
        reference = _new_reference("generate", reference)
        with _arguments("generate", reference):
            if isinstance(quantity, bool) or not isinstance(quantity, int) or quantity < 1:
                raise _Refused("16", "quantity", "must be a whole number above zero")
            body: dict[str, Any] = {"reference": reference, "quantity": quantity}
            if self.variant == "a":
                if not product_code or expiry_date is not None:
                    raise _Refused("30", "productCode", "is required in variant a, which has no expiry_date")
                body |= {"productCode": product_code, "amount": _amount(value, "value")}
            else:
                if product_code is not None:
                    raise _Refused("30", "productCode", "does not exist in variant b")
                given = None if value is None else _amount(value, "value")
                body |= {"value": given, "expiryDate": expiry_date}
        return self._effect(self._generation(body), deadline)

    def download(self, reference: str, *, deadline: float | None = None) -> Batch:
        """The batch that was generated under a reference, with its vouchers once it is completed."""
        with _arguments("download", reference):
            _reference(reference)
        return self._read("download", "GET", f"/vouchers/{_quote(reference)}", None, _read_batch, deadline)

    def wait_for_batch(self, reference: str, *, deadline: float = 3600.0) -> Batch:
        """Wait until a batch is produced. Raises ScripError `batchCanceled` or `timedOut`."""
        ends_at = time.monotonic() + deadline
        delay = 1.0
        while True:
            batch = self.download(reference)
            if batch.status == "COMPLETED":
                return batch
            if batch.status == "CANCELED":
                raise ScripError("wait_for_batch", "batchCanceled", reference=reference)
            if time.monotonic() + delay >= ends_at:
                raise ScripError("wait_for_batch", "timedOut", is_retryable=True, reference=reference)
            time.sleep(delay)
            delay = min(30.0, delay * 2)

    def activate(
        self,
        *,
        code: str | None = None,
        pin: str | None = None,
        serial_number: int | str | None = None,
        value: Amount | None = None,
        reference: str | None = None,
        deadline: float | None = None,
    ) -> Transaction:
        """Activate a voucher: by code and PIN in variant A, by serial number in variant B."""
        reference = _new_reference("activate", reference)
        with _arguments("activate", reference):
            body: dict[str, Any]
            if self.variant == "a":
                if serial_number is not None or value is not None:
                    raise _Refused("30", "serialNumber", "does not exist in variant a, nor does value")
                body = dict(zip(("code", "pin"), _voucher(code, pin))) | {"reference": reference}
            else:
                if code is not None or pin is not None:
                    raise _Refused("30", "code", "does not exist in variant b, nor does pin")
                if not re.fullmatch(r"[1-9][0-9]{0,14}", str(serial_number)):
                    raise _Refused("30", "serialNumber", "must be a whole number of at most 15 digits")
                given = None if value is None else _amount(value, "value")
                body = {"serialNumber": int(str(serial_number)), "value": given, "reference": reference}
        return self._effect(self._transaction_call("activate", "ACTIVATION", body, None), deadline)

    def balance(self, code: str, pin: str | None = None, *, deadline: float | None = None) -> Balance:
        """The balance of a voucher, and how much of it can be redeemed now."""
        with _arguments("balance", None):
            body = self._named(*_voucher(code, pin))
        return self._read("balance", "POST", "/balance", body, _read_balance, deadline)

    # Redemptions

    def redeem(
        self,
        code: str,
        pin: str | None,
        amount: Amount,
        *,
        reference: str | None = None,
        with_balance: bool = False,
        deadline: float | None = None,
    ) -> Transaction:
        """Take an amount from a voucher: the whole amount, or nothing.

        With `with_balance`, the result has the balance afterwards, or None if it could not be read.
        """
        reference = _new_reference("redeem", reference)
        with _arguments("redeem", reference):
            named = self._named(*_voucher(code, pin))
            body = named | {"amount": _amount(amount, "amount"), "reference": reference}
        payment = self._effect(
            self._transaction_call("redeem", "REDEMPTION", body, Decimal(amount)), deadline
        )
        return self._with_balance(payment, code, pin, deadline) if with_balance else payment

    def redeem_up_to(
        self,
        code: str,
        pin: str | None,
        amount: Amount,
        *,
        reference: str | None = None,
        deadline: float | None = None,
    ) -> Transaction:
        """Take an amount, or what is left on the voucher if that is less.

        `remaining` of the result is what is still to be paid in another way. Raises ScripError if nothing can
        be taken. Safe to repeat under the same reference.
        """
        reference = _new_reference("redeem", reference)
        wanted = Decimal(amount)
        for is_last in (False, True):
            usable = self.balance(code, pin, deadline=deadline)
            # With nothing to take, the refusal of the whole amount says why.
            take = min(wanted, usable.usable_amount) or wanted
            try:
                paid = self.redeem(code, pin, take, reference=reference, deadline=deadline)
                return _with(paid, remaining=wanted - paid.amount)
            except ScripError as error:
                if error.code == "insufficientBalance" and not is_last:
                    continue  # Another till was faster.
                earlier = self._earlier(error, reference, usable, wanted, deadline)
                if earlier is None:
                    raise
                return _with(earlier, remaining=wanted - earlier.amount, replayed=True)
        raise AssertionError("unreachable")

    def update_redemption(
        self, reference: str, amount_used: Amount, *, deadline: float | None = None
    ) -> RedemptionUpdate:
        """Change the amount of a redemption, once. Variant A only."""
        return self._effect(self._update("updateRedemption", reference, amount_used), deadline)

    def reverse_redemption(self, reference: str, *, deadline: float | None = None) -> RedemptionUpdate:
        """Give the whole amount of a redemption back to the voucher. Variant A only."""
        return self._effect(self._update("reverseRedemption", reference, 0), deadline)

    def redemption_update(self, reference: str, *, deadline: float | None = None) -> RedemptionUpdate:
        """The result of the update of a redemption. Variant A only."""
        with _arguments("redemption_update", reference):
            self._require_updates()
            path = f"/redemptions/update/{_quote(_reference(reference))}"
        return self._read("redemption_update", "GET", path, None, _read_update, deadline)

    def undo(self, reference: str, *, deadline: float | None = None) -> Undone:
        """Give a redemption up: if it was booked, it is reversed; if not, it never will be.

        Needs `portal_token`. Safe to repeat, and to call while `redeem` is still waiting. Do not use the
        reference again. Raises ScripError `redemptionAlreadyUpdated` if it was changed to another amount.
        """
        with _arguments("undo", None):
            _new_reference_text(reference)
            if self._portal_token is None:
                raise _Refused("01", "portal_token", "must be given to the client for undo")

        def take(answer: _Answer) -> Undone:
            undone = _read_undone(answer)
            if undone.reference != reference:
                raise _Malformed("it is about another reference")
            return undone

        call = _Call(
            "undo",
            "POST",
            "/portal/v1/redemptions/give-up",
            {"reference": reference, "keyId": self._key_id},
            f"Bearer {self._portal_token}",
            take,
            reference,
            proves=_proves_no_undoing,
        )
        undone = self._effect(call, deadline)
        self._undone[reference] = None
        while len(self._undone) > 1000:
            del self._undone[next(iter(self._undone))]
        return undone

    def transaction(self, reference: str, *, deadline: float | None = None) -> Transaction:
        """The active transaction under a reference: the redemption, as updated, else the activation.

        Raises ScripError `notFound` where there is none, also after a full reversal.
        """
        with _arguments("transaction", reference):
            _reference(reference)

        def take(answer: _Answer) -> Transaction:
            found = _read_transaction(answer.data, answer)
            if (
                reference not in (found.reference, found.transaction_id)
                and found.reference != f"NEW-{reference}"
            ):
                raise _Malformed("it is about another reference")
            return found

        return self._read("transaction", "GET", f"/transactions/{_quote(reference)}", None, take, deadline)

    def transactions(self, *, deadline: float | None = None) -> list[Transaction]:
        """The most recent transactions, newest first, at most 50."""

        def take(answer: _Answer) -> list[Transaction]:
            return [_read_transaction(each) for each in _list(answer.data, "data")]

        return self._read("transactions", "GET", "/transactions", None, take, deadline)

    def recover(
        self, *, record: Callable[[Recovered], object] | None = None, deadline: float | None = None
    ) -> list[Recovered]:
        """Find out what became of calls that an earlier process began. Call it at the start.

        A redemption that is not found is given up, if there is a `portal_token`: start again under a new
        reference. `record` gets each known outcome before the call is forgotten.
        """
        if self._pending is None:
            raise ScripError(
                "recover", "invalidRequest", "pending must be given to the client", status_code="30"
            )
        calls, damage = self._pending.list_calls()
        recovered = []
        for call in calls:
            found = self._recover(call, deadline)
            recovered.append(found)
            if found.outcome != "unknown":
                if record is not None:
                    record(found)
                self._pending.forget(call)
        if damage is not None:
            raise damage
        return recovered

    # How calls are made

    def _named(self, code: str, pin: str) -> dict[str, Any]:
        return {"code" if self.variant == "a" else "voucherCode": code, "pin": pin}

    def _require_updates(self) -> None:
        if self.variant != "a":
            raise _Refused("98", "variant", "b has no updates")

    def _kept(self, operation: str, body: Mapping[str, Any], amount: Decimal | None) -> PendingCall:
        """Return the part of a call that the store keeps: never a code or a PIN."""
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        kept = None if "pin" in body else body
        return PendingCall(operation, body["reference"], self._base_url, self.variant, now, amount, kept)

    def _post(
        self, operation: str, path: str, body: Mapping[str, Any], take: Callable[[_Answer], T]
    ) -> _Call[T]:
        prefix = PREFIXES[self.variant]
        return _Call(operation, "POST", prefix + path, body, self._authorization, take, body.get("reference"))

    def _generation(self, body: Mapping[str, Any]) -> _Call[Batch]:
        reference = body["reference"]

        def take(answer: _Answer) -> Batch:
            batch = _read_batch(answer)
            if batch.reference != reference:
                raise _Malformed("it is about another reference")
            return batch

        return _with(
            self._post("generate", "/vouchers", body, take),
            proves=_proves_no_effect,
            lookup=lambda: _or_none(lambda: self.download(reference)),
            pending=self._kept("generate", body, None),
        )

    def _transaction_call(
        self, operation: str, kind: str, body: Mapping[str, Any], amount: Decimal | None
    ) -> _Call[Transaction]:
        reference = body["reference"]

        def take(answer: _Answer) -> Transaction:
            made = _read_transaction(answer.data, answer)
            if made.transaction_type != kind or made.reference not in (None, reference):
                raise _Malformed("it is about another transaction")
            if amount is not None and made.amount != amount:
                raise _Malformed("it is about another amount")
            if kind == "REDEMPTION" and reference in self._undone:
                undone = ScripError(operation, "undone", "it is no payment", reference=reference)
                raise _Failure(undone, may_have_happened=False, again=False)
            return made

        return _with(
            self._post(operation, f"/{operation}", body, take),
            proves=_proves_no_effect,
            lookup=lambda: self._lookup(reference, kind),
            pending=self._kept(operation, body, amount),
        )

    def _update(self, operation: str, reference: str, amount: Amount) -> _Call[RedemptionUpdate]:
        with _arguments(operation, reference):
            self._require_updates()
            number = _amount(amount, "amountUsed", may_be_zero=True)
            body = {"reference": _reference(reference), "amountUsed": number}

        def take(answer: _Answer) -> RedemptionUpdate:
            update = _read_update(answer)
            if update.new_amount != Decimal(amount):
                raise _Malformed("it is about another amount")
            return update

        def recover(error: ScripError) -> RedemptionUpdate | None:
            first = error.update if error.status_code == "58" else None
            is_ours = first is not None and first.new_amount == Decimal(amount)
            return _with(first, replayed=True) if is_ours else None

        return _with(
            self._post(operation, "/redemptions/update", body, take),
            proves=_proves_no_update,
            recover=recover,
            lookup=lambda: self._lookup_update(reference, Decimal(amount)),
            pending=self._kept(operation, body, Decimal(amount)),
        )

    def _lookup(self, reference: str, kind: str, deadline: float | None = None) -> Transaction | None:
        found = _or_none(lambda: self.transaction(reference, deadline=deadline))
        return _with(found, replayed=True) if found and found.transaction_type == kind else None

    def _lookup_update(self, reference: str, amount: Decimal) -> RedemptionUpdate | None:
        found = _or_none(lambda: self.redemption_update(reference))
        return _with(found, replayed=True) if found and found.new_amount == amount else None

    def _with_balance(
        self, payment: Transaction, code: str, pin: str | None, deadline: float | None
    ) -> Transaction:
        """The payment is done, whether or not the balance can be read."""
        try:
            return _with(payment, balance=self.balance(code, pin, deadline=deadline))
        except ScripError:
            return payment

    def _earlier(
        self, error: ScripError, reference: str, found: Balance, wanted: Decimal, deadline: float | None
    ) -> Transaction | None:
        """What an earlier call of redeem_up_to has taken, if another amount was left then."""
        if error.code != "referenceAlreadyUsed":
            return None
        paid = self._lookup(reference, "REDEMPTION", deadline)
        is_ours = paid is not None and paid.serial_number == found.serial_number and paid.amount <= wanted
        return paid if is_ours else None

    def _recover(self, call: PendingCall, deadline: float | None) -> Recovered:
        if call.base_url != self._base_url or call.variant != self.variant:
            return Recovered(call, "unknown")
        try:
            if call.body is not None:
                return Recovered(call, "done", self._resolve(self._again(call, call.body), deadline))
            kind = "REDEMPTION" if call.operation == "redeem" else "ACTIVATION"
            found = self._lookup(call.reference, kind, deadline)
            if found is not None:
                return Recovered(call, "done", found)
            # The request may still be on its way.
            if call.operation != "redeem" or self._portal_token is None:
                return Recovered(call, "unknown")
            self.undo(call.reference, deadline=deadline)
            return Recovered(call, "not-done")
        except UnknownOutcomeError as error:
            return Recovered(call, "unknown", error=error)
        except ScripError as error:
            return Recovered(call, "unknown" if call.body is None else "not-done", error=error)

    def _again(self, call: PendingCall, body: Mapping[str, Any]) -> _Call[Any]:
        """The same request once more. It was checked when it was kept."""
        if call.operation == "generate":
            return self._generation(body)
        if call.operation == "activate":
            return self._transaction_call("activate", "ACTIVATION", body, None)
        return self._update(call.operation, call.reference, call.amount or Decimal(0))

    def _read(
        self,
        operation: str,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        take: Callable[[_Answer], T],
        deadline: float | None,
    ) -> T:
        reference = None if body is None else body.get("reference")
        url = PREFIXES[self.variant] + path
        call = _Call(operation, method, url, body, self._authorization, take, reference)
        return self._retry(call, deadline, is_open=False)

    def _effect(self, call: _Call[T], deadline: float | None) -> T:
        """A call that has an effect: once, however many attempts it takes."""

        def run(is_open: bool) -> T:
            return self._retry(call, deadline, is_open=is_open)

        if self._pending is None or call.pending is None:
            return run(False)
        return self._pending.keep(call.pending, run)

    def _resolve(self, call: _Call[T], deadline: float | None) -> T:
        """Send the same request again. If the refusal does not prove the outcome, look the effect up."""
        try:
            return self._retry(call, deadline, is_open=True)
        except UnknownOutcomeError as error:
            try:
                found = call.lookup() if call.lookup and error.last.status_code is not None else None
            except ScripError:
                found = None  # The outcome is as unknown as before.
            if found is None:
                raise
            return found

    def _retry(self, call: _Call[T], deadline: float | None, *, is_open: bool) -> T:
        """Make attempts until there is a definite response, or the time is over."""
        ends_at = time.monotonic() + (self._deadline if deadline is None else deadline)
        attempts = 0
        while True:
            attempts += 1
            try:
                timeout = min(self._attempt_timeout, max(0.001, ends_at - time.monotonic()))
                return self._attempt(call, timeout)
            except _Failure as failure:
                error = failure.error
                recovered = call.recover(error) if is_open and call.recover else None
                if recovered is not None:
                    return recovered
                is_open = is_open or (failure.may_have_happened and call.proves is not None)
                delay = min(_DELAY_MAX, self._retry_delay * 2 ** min(attempts - 1, 10)) * random.uniform(
                    0.5, 1
                )
                if error.retry_after is not None:
                    delay = max(delay, error.retry_after * random.uniform(1, 1.1))
                is_over = attempts >= self._max_attempts or time.monotonic() + delay >= ends_at
                if not failure.again or is_over:
                    if is_open and call.proves is not None and not call.proves(error):
                        raise UnknownOutcomeError(error, lambda how: self._settle(call, how)) from None
                    raise error from None
            if self._on_retry is not None:
                self._on_retry(error, delay)
            time.sleep(delay)

    def _settle(self, call: _Call[T], deadline: float | None) -> T:
        if self._pending is None or call.pending is None:
            return self._resolve(call, deadline)
        return self._pending.keep(call.pending, lambda _is_open: self._resolve(call, deadline))

    def _attempt(self, call: _Call[T], timeout: float) -> T:
        """One attempt, on a connection of its own. Redirects are not followed."""
        ends_at = time.monotonic() + timeout
        try:
            return self._judge(call, *self._exchange(call, ends_at))
        except (OSError, http.client.HTTPException) as error:
            is_timeout = isinstance(error, TimeoutError)
            # Neither the error nor its text is passed on: it may contain the request.
            code = "timedOut" if is_timeout else "networkFailure"
            found = ScripError(
                call.operation, code, type(error).__name__, is_retryable=True, reference=call.reference
            )
            sent = not isinstance(error, _NotConnected)
            raise _Failure(found, may_have_happened=sent, again=True) from None

    def _exchange(self, call: _Call[T], ends_at: float) -> tuple[int, Mapping[str, str], bytes]:
        connection = self._connect(ends_at)
        try:
            headers = {"Authorization": call.authorization, "Accept": "application/json"}
            body = None
            if call.body is not None:
                headers["Content-Type"] = "application/json"
                body = json.dumps(call.body).encode()
            stream = connection.sock
            connection.request(call.method, self._url.path.rstrip("/") + call.path, body, headers)
            stream.settimeout(_left(ends_at))
            response = connection.getresponse()
            pieces: list[bytes] = []
            size = 0
            while True:
                stream.settimeout(_left(ends_at))
                piece = response.read1(1 << 16)
                if not piece:
                    break
                size += len(piece)
                if size > _BODY_MAX_BYTES:
                    raise http.client.HTTPException("the answer is too large")
                pieces.append(piece)
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
            return (
                response.status,
                {name.lower(): value for name, value in response.getheaders()},
                b"".join(pieces),
            )
        finally:
            connection.close()

    def _connect(self, ends_at: float) -> http.client.HTTPConnection:
        """Raises _NotConnected: nothing was sent."""
        host, port = self._url.hostname or "", self._url.port
        connection: http.client.HTTPConnection
        if self._url.scheme == "https":
            context = self._ssl_context or ssl.create_default_context()
            connection = http.client.HTTPSConnection(host, port, timeout=_left(ends_at), context=context)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=_left(ends_at))
        try:
            connection.connect()
        except OSError:
            connection.close()
            raise _NotConnected from None
        return connection

    def _judge(self, call: _Call[T], status: int, headers: Mapping[str, str], content: bytes) -> T:
        request_id = headers.get("x-request-id")
        if request_id is not None and not re.fullmatch(r"[\x21-\x7e]{1,128}", request_id):
            request_id = None
        try:
            body = json.loads(content, parse_float=Decimal)
        except (ValueError, UnicodeDecodeError, RecursionError):
            body = None
        fields = body if isinstance(body, dict) else {}
        retry_after = _retry_after(headers.get("retry-after"))
        replayed = headers.get("idempotent-replayed") == "true"
        is_portal = call.path.startswith("/portal/")
        code = _code_of(status, fields, is_portal)
        if code != "00":
            raise self._refused(call, status, code, fields, request_id, retry_after)
        data = fields if is_portal else fields.get("data")
        try:
            return call.take(_Answer(data, replayed, request_id))
        except _Malformed as malformed:
            error = ScripError(
                call.operation,
                "invalidResponse",
                str(malformed),
                http_status=status,
                is_retryable=True,
                request_id=request_id,
                reference=call.reference,
            )
            raise _Failure(error, may_have_happened=True, again=True) from None

    def _refused(
        self,
        call: _Call[T],
        status: int,
        code: str | None,
        fields: Mapping[str, Any],
        request_id: str | None,
        retry_after: float | None,
    ) -> _Failure:
        common: dict[str, Any] = {
            "http_status": status,
            "request_id": request_id,
            "reference": call.reference,
            "retry_after": retry_after,
        }
        if code is None:
            # A response of another server, such as a proxy: only its HTTP status has a meaning.
            is_fault = status >= 500 or status == 408 or 200 <= status < 300
            again = is_fault or status == 429
            error = ScripError(
                call.operation, "invalidResponse", f"HTTP {status}", is_retryable=again, **common
            )
            return _Failure(error, may_have_happened=is_fault, again=again)
        may_have_happened = status >= 500 or code in ("91", "96")
        again = may_have_happened or status == 429 or code == "97"
        error = ScripError(
            call.operation,
            STATUS_CODES.get(code, "unknownStatus"),
            self._redact(call, fields.get("detail") or fields.get("message") or ""),
            status_code=code,
            is_retryable=again,
            field_errors=self._field_errors(call, fields.get("errors")),
            update=_first_update(fields.get("data")) if code == "58" else None,
            **common,
        )
        return _Failure(error, may_have_happened=may_have_happened, again=again)

    def _field_errors(self, call: _Call[T], errors: Any) -> tuple[Mapping[str, str], ...]:
        found = [each for each in errors if isinstance(each, dict)] if isinstance(errors, list) else []
        names = ("field", "rule", "message")
        return tuple({name: self._redact(call, each.get(name)) for name in names} for each in found[:50])

    def _redact(self, call: _Call[T], text: Any) -> str:
        """A text of the service: anything that could be a code, a PIN or a secret is masked."""
        clean = str(text)
        body = call.body or {}
        own = [str(body[name]) for name in ("code", "voucherCode") if name in body]
        for secret in sorted([*self._confidential, *own], key=len, reverse=True):
            clean = clean.replace(secret, "****")
        return re.sub(r"\d{4,}", "****", clean)[:300]


class _NotConnected(OSError):
    """The connection was never made: nothing was sent."""


class _Refused(Exception):
    """An argument that was refused. It becomes a ScripError, and holds no value."""

    def __init__(self, status_code: str, name: str, problem: str) -> None:
        super().__init__(f"{name} {problem}")
        self.status_code = status_code
        self.error = {"field": name, "rule": "argument", "message": problem}


@contextmanager
def _arguments(operation: str, reference: str | None) -> Iterator[None]:
    """Checks arguments: a request that the service would refuse is not sent."""
    try:
        yield
    except _Refused as refused:
        raise ScripError(
            operation,
            STATUS_CODES[refused.status_code],
            str(refused),
            status_code=refused.status_code,
            reference=reference,
            field_errors=(refused.error,),
        ) from None


class _Pending:
    """The calls of a client in its store."""

    def __init__(self, store: PendingStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        #: The calls whose outcome is unknown, from an earlier process or from this one; read once.
        self._open: set[str] | None = None
        #: How many calls run at present, by their keys.
        self._running: dict[str, int] = {}

    def keep(self, call: PendingCall, run: Callable[[bool], T]) -> T:
        """Keeps a call before it runs, and forgets it when its outcome is known."""
        key = call.key
        with self._lock:
            self._running[key] = self._running.get(key, 0) + 1
        try:
            is_open = self._put(call)
            try:
                result = run(is_open)
            except ScripError as error:
                if not isinstance(error, UnknownOutcomeError):
                    self._end(call)
                raise
            self._end(call)
            return result
        finally:
            with self._lock:
                self._running[key] -= 1
                if self._running[key] == 0:
                    del self._running[key]

    def list_calls(self) -> tuple[list[PendingCall], DamagedStoreError | None]:
        """The calls that are kept, and do not run at present."""
        calls, damage = self._read()
        with self._lock:
            return [call for call in calls if call.key not in self._running], damage

    def forget(self, call: PendingCall) -> None:
        """One that could not be forgotten is recovered once more, with the same outcome."""
        with self._lock:
            if self._open is not None:
                self._open.discard(call.key)
        with suppress(OSError):
            self._store.delete(call)

    def _end(self, call: PendingCall) -> None:
        """Forgets a call whose outcome is known, unless a copy of it still runs."""
        with self._lock:
            is_last = self._running[call.key] == 1
        if is_last:
            self.forget(call)

    def _put(self, call: PendingCall) -> bool:
        """Returns whether the outcome of an earlier copy is unknown."""
        try:
            with self._lock:
                if self._open is None:
                    self._open = {each.key for each in self._read()[0]}
                is_open = call.key in self._open
                self._open.add(call.key)
            self._store.put(call)
            return is_open
        except OSError as error:
            with self._lock:
                self._open = None
            detail = f"it could not be kept, and was not sent ({type(error).__name__})"
            raise ScripError(
                call.operation, "storeFailure", detail, is_retryable=True, reference=call.reference
            ) from None

    def _read(self) -> tuple[list[PendingCall], DamagedStoreError | None]:
        try:
            return self._store.list_calls(), None
        except DamagedStoreError as damage:
            return damage.calls, damage


def _with(value: T, **changes: Any) -> T:
    """A copy of a dataclass with other values."""
    return dataclasses.replace(value, **changes)  # type: ignore[type-var]


def _or_none(look: Callable[[], T]) -> T | None:
    """The result of a lookup, or None where it finds nothing."""
    try:
        return look()
    except ScripError as error:
        if error.code == "notFound":
            return None
        raise


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _left(ends_at: float) -> float:
    left = ends_at - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _retry_after(text: str | None) -> float | None:
    """Seconds, or a date."""
    if text is None:
        return None
    if re.fullmatch(r"[0-9]{1,9}", text):
        return float(text)
    try:
        return max(0.0, (parsedate_to_datetime(text) - datetime.now(timezone.utc)).total_seconds())
    except (TypeError, ValueError):
        return None


def _code_of(status: int, fields: Mapping[str, Any], is_portal: bool) -> str | None:
    """The status code of a response; None for one of another server."""
    if is_portal:
        if status == 200 and "outcome" in fields:
            return "00"
        problem = fields.get("code")
        code = _BY_PROBLEM.get(problem, problem) if isinstance(problem, str) else None
        return code if status >= 400 and code is not None and re.fullmatch(r"[0-9]{2}", code) else None
    code = fields.get("statusCode")
    if isinstance(code, str) and re.fullmatch(r"[0-9]{2}", code):
        return None if code == "00" and not 200 <= status < 300 else code
    return _BY_HTTP_STATUS.get(status) if isinstance(fields.get("message"), str) else None


# Arguments


def _number(amount: Decimal) -> int | float:
    """The JSON number of an amount, which json writes with the same digits."""
    return int(amount) if amount == amount.to_integral_value() else float(amount)


def _amount(value: Any, name: str, *, may_be_zero: bool = False) -> int | float:
    """Checks that an amount can be sent exactly. Nothing is rounded."""
    if isinstance(value, bool) or not isinstance(value, (Decimal, int)):
        raise _Refused("30", name, "must be a Decimal or an int: a float is not exact")
    amount = Decimal(value)
    if not amount.is_finite():
        raise _Refused("13", name, "must be a finite number")
    if amount.is_signed() or (amount == 0 and not may_be_zero):
        raise _Refused("13", name, "must not be negative" if may_be_zero else "must be above zero")
    exponent = amount.normalize().as_tuple().exponent
    if isinstance(exponent, int) and exponent < -4:
        raise _Refused("13", name, "must have at most 4 decimals; amounts are never rounded")
    if amount.scaleb(4) > 2**53 - 1:
        raise _Refused("13", name, "is too large to be exact")
    return _number(amount)


def _voucher(code: Any, pin: Any) -> tuple[str, str]:
    """Code and PIN apart, whichever way they were given."""
    if not isinstance(code, str) or not re.fullmatch(r"[0-9]{12}([0-9]{4})?", code):
        raise _Refused("30", "code", "must be 12 digits (with pin), or 16 digits (code and PIN, without pin)")
    if len(code) == 16:
        if pin is not None:
            raise _Refused("30", "pin", "must be left out with a code of 16 digits")
        return code[:12], code[12:]
    if not isinstance(pin, str) or not re.fullmatch(r"[0-9]{4}", pin):
        raise _Refused("30", "pin", "must be 4 digits, as a string")
    return code, pin


def _reference(value: Any) -> str:
    """Checks a reference to look something up by."""
    if not isinstance(value, str):
        raise _Refused("30", "reference", "must be a string")
    if not 1 <= len(value) <= 100:
        raise _Refused("18", "reference", "must have 1 to 100 characters")
    if any(unicodedata.category(each) in ("Cc", "Cs") for each in value):
        raise _Refused("18", "reference", "must be well-formed and have no control characters")
    if value in (".", ".."):
        raise _Refused("18", "reference", "cannot be a single or a double dot")
    return value


def _new_reference_text(value: Any) -> str:
    reference = _reference(value)
    if reference.startswith(("CANCEL-", "NEW-")):
        raise _Refused("18", "reference", "must not begin with CANCEL- or NEW-")
    return reference


def _new_reference(operation: str, given: str | None) -> str:
    """The reference of something new: the caller's, or a generated one."""
    with _arguments(operation, None):
        return str(uuid.uuid4()) if given is None else _new_reference_text(given)


def _quote(reference: str) -> str:
    return urllib.parse.quote(reference, safe="")


# Responses. A field that is missing or of another type makes a response invalid.


def _object(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _Malformed(f"{name} is not an object")
    return value


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise _Malformed(f"{name} is not a list")
    return value


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise _Malformed(f"{name} is not a string")
    return value


def _text_or_none(fields: Mapping[str, Any], name: str) -> str | None:
    return None if fields.get(name) is None else _text(fields, name)


def _decimal(fields: Mapping[str, Any], name: str) -> Decimal:
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise _Malformed(f"{name} is not a number")
    return Decimal(value)


def _decimal_or_none(fields: Mapping[str, Any], name: str) -> Decimal | None:
    return None if fields.get(name) is None else _decimal(fields, name)


def _serial(fields: Mapping[str, Any]) -> str:
    """The interface has serial numbers as numbers in some places and as strings in others."""
    text = str(fields.get("serialNumber"))
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise _Malformed("serialNumber is not a serial number")
    return text


def _masked(code: str) -> str:
    return code if "*" in code else f"{code[:4]}****{code[8:12]}"


def _read_transaction(data: Any, answer: _Answer | None = None) -> Transaction:
    fields = _object(data, "data")
    kind = _text(fields, "transactionType")
    if kind not in ("ACTIVATION", "REDEMPTION", "REDEMPTION_REVERSAL"):
        raise _Malformed("transactionType is not one of the interface")
    return Transaction(
        transaction_id=_text(fields, "transactionId"),
        transaction_type=kind,
        amount=_decimal(fields, "amount"),
        timestamp=_text_or_none(fields, "timestamp"),
        reference=_text_or_none(fields, "reference"),
        voucher_code=_masked(_text(fields, "voucherCode")),
        serial_number=_serial(fields),
        refund_status=_text_or_none(fields, "refundStatus"),
        note=_text_or_none(fields, "note"),
        replayed=answer is not None and answer.replayed,
        request_id=None if answer is None else answer.request_id,
    )


def _read_balance(answer: _Answer) -> Balance:
    fields = _object(answer.data, "data")
    return Balance(
        serial_number=_serial(fields),
        voucher_code=_masked(_text(fields, "voucherCode")),
        balance=_decimal(fields, "balance"),
        usable_amount=_decimal(fields, "usableAmount"),
        value=_decimal_or_none(fields, "value"),
        transactions=tuple(
            _object(each, "the transaction") for each in _list(fields.get("transactions"), "transactions")
        ),
    )


def _read_batch(answer: _Answer) -> Batch:
    fields = _object(answer.data, "data")
    status = _text(fields, "status")
    if status not in ("PROCESSING", "COMPLETED", "CANCELED"):
        raise _Malformed("status is not one of the interface")
    found = _list(fields.get("vouchers"), "vouchers") if status == "COMPLETED" else []
    vouchers = [_object(each, "the voucher") for each in found]
    return Batch(
        reference=_text(fields, "reference"),
        transaction_id=_text(fields, "transactionId"),
        status=status,
        expiry_date=_text(fields, "expiryDate"),
        value=_decimal_or_none(fields, "value"),
        vouchers=tuple(
            Voucher(_serial(each), _text(each, "code"), _text_or_none(each, "pin")) for each in vouchers
        ),
        replayed=answer.replayed,
        request_id=answer.request_id,
    )


def _read_update(answer: _Answer) -> RedemptionUpdate:
    fields = _object(answer.data, "data")
    summary = _object(fields.get("summary"), "summary")
    replacement = fields.get("newTransaction")
    return RedemptionUpdate(
        original_transaction=_read_transaction(fields.get("originalTransaction")),
        cancellation_transaction=_read_transaction(fields.get("cancellationTransaction")),
        new_transaction=None if replacement is None else _read_transaction(replacement),
        original_amount=_decimal(summary, "originalAmount"),
        new_amount=_decimal(summary, "newAmount"),
        reference=_text(summary, "reference"),
        replayed=answer.replayed,
        request_id=answer.request_id,
    )


def _first_update(data: Any) -> RedemptionUpdate | None:
    """The result of the first update, which the response may leave out."""
    try:
        return _read_update(_Answer(data, False, None))
    except _Malformed:
        return None


def _read_undone(answer: _Answer) -> Undone:
    fields = _object(answer.data, "the answer")
    outcome = _text(fields, "outcome")
    if outcome not in ("reversed", "already-reversed", "given-up"):
        raise _Malformed("outcome is not one of the interface")
    return Undone(
        outcome=outcome,
        reference=_text(fields, "reference"),
        transaction_id=_text_or_none(fields, "transactionId"),
        reversal_id=_text_or_none(fields, "reversalId"),
        amount=_decimal_or_none(fields, "amount"),
        voucher_code=_text_or_none(fields, "voucherCode"),
        request_id=answer.request_id,
    )
