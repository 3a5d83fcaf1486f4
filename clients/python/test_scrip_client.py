"""Tests of the client against a service, which `npx node test/run.ts sdk.python` starts."""

from __future__ import annotations

import os
import tempfile
import unittest
import uuid
from decimal import Decimal
from typing import Any

import scrip_client
from scrip_client import (
    DamagedStoreError,
    FileStore,
    PendingCall,
    Scrip,
    ScripError,
    UnknownOutcomeError,
    Variant,
    Voucher,
)


def client(variant: Variant = "a", **options: Any) -> Scrip:
    env = os.environ
    given: dict[str, Any] = {"portal_token": env["SCRIP_PORTAL_TOKEN"], "retry_delay": 0.01} | options
    base_url = given.pop("base_url", env["SCRIP_BASE_URL"])
    return Scrip(base_url, env["SCRIP_KEY_ID"], given.pop("secret", env["SCRIP_SECRET"]), variant, **given)


def fresh(name: str) -> str:
    return f"{name} {uuid.uuid4()} – ä€🎁"


def voucher(value: str = "25") -> Voucher:
    return client("b").generate(quantity=1, value=Decimal(value)).vouchers[0]


class Losing(Scrip):
    """A client that loses the answers to its requests, or never sends them."""

    sends = True
    is_down = True

    def _exchange(self, call: Any, ends_at: float) -> Any:
        answer = super()._exchange(call, ends_at) if self.sends else None
        if self.is_down:
            raise ConnectionResetError
        return answer


def losing(variant: Variant, *, sends: bool, **options: Any) -> Losing:
    env = os.environ
    made = Losing(
        env["SCRIP_BASE_URL"], env["SCRIP_KEY_ID"], env["SCRIP_SECRET"], variant, max_attempts=1, **options
    )
    made.sends = sends
    return made


class Calls(unittest.TestCase):
    def test_redeems_alike_in_both_variants(self) -> None:
        for variant in ("a", "b"):
            scrip, card, reference = client(variant), voucher(), fresh("order")
            paid = scrip.redeem(card.code, card.pin, Decimal("10.50"), reference=reference, with_balance=True)
            self.assertEqual(
                (paid.amount, paid.reference, paid.replayed), (Decimal("10.5"), reference, False)
            )
            assert paid.balance is not None
            self.assertEqual(paid.balance.balance, Decimal("14.5"))
            again = scrip.redeem(card.code + (card.pin or ""), None, Decimal("10.5"), reference=reference)
            self.assertEqual((again.transaction_id, again.replayed), (paid.transaction_id, True))
            self.assertEqual(scrip.transaction(reference).transaction_id, paid.transaction_id)
            self.assertIn(paid.transaction_id, [each.transaction_id for each in scrip.transactions()])
            self.assertNotIn(card.code, repr(paid))

    def test_redeems_up_to_what_is_left(self) -> None:
        scrip, card = client(), voucher("10.1")
        first = scrip.redeem_up_to(card.code, card.pin, Decimal("7.4"))
        self.assertEqual((first.amount, first.remaining), (Decimal("7.4"), 0))
        reference = fresh("rest")
        for replayed in (False, True):
            rest = scrip.redeem_up_to(card.code, card.pin, Decimal("7.4"), reference=reference)
            got = (rest.amount, rest.remaining, rest.replayed)
            self.assertEqual(got, (Decimal("2.7"), Decimal("4.7"), replayed))
        with self.assertRaises(ScripError) as caught:
            scrip.redeem_up_to(card.code, card.pin, 1)
        self.assertEqual(caught.exception.code, "voucherAlreadyRedeemed")

    def test_activates_and_generates(self) -> None:
        a, b = client("a"), client("b")
        batch = b.generate(quantity=2, reference=fresh("batch"))
        one, two = batch.vouchers
        self.assertEqual(b.activate(serial_number=one.serial_number, value=20).amount, 20)
        self.assertEqual(a.activate(code=two.code, pin=two.pin).amount, 5000)
        made = a.generate(quantity=1, value=5, product_code="DEFAULT")
        self.assertEqual(a.download(made.reference).vouchers, made.vouchers)
        self.assertEqual(a.wait_for_batch(made.reference).status, "COMPLETED")
        self.assertNotIn(made.vouchers[0].code, repr(made))

    def test_updates_once(self) -> None:
        scrip, card, reference = client(), voucher(), fresh("order")
        scrip.redeem(card.code, card.pin, 10, reference=reference)
        self.assertEqual(scrip.update_redemption(reference, Decimal("4.5")).new_amount, Decimal("4.5"))
        self.assertEqual(scrip.redemption_update(reference).original_amount, 10)
        with self.assertRaises(ScripError) as caught:
            scrip.reverse_redemption(reference)
        self.assertEqual(caught.exception.code, "redemptionAlreadyUpdated")
        assert caught.exception.update is not None
        self.assertEqual(caught.exception.update.new_amount, Decimal("4.5"))

    def test_undoes_what_was_booked_and_what_was_not(self) -> None:
        for variant in ("a", "b"):
            scrip, card = client(variant), voucher()
            for sends, outcome in ((True, "reversed"), (False, "given-up")):
                reference = fresh("order")
                with self.assertRaises(UnknownOutcomeError):
                    losing(variant, sends=sends).redeem(card.code, card.pin, 5, reference=reference)
                self.assertEqual(scrip.undo(reference).outcome, outcome)
                with self.assertRaises(ScripError) as caught:
                    scrip.redeem(card.code, card.pin, 5, reference=reference)
                self.assertEqual(caught.exception.code, "undone" if sends else "referenceAlreadyUsed")
                self.assertNotIsInstance(caught.exception, UnknownOutcomeError)
            self.assertEqual(scrip.balance(card.code, card.pin).balance, 25)

    def test_resolves_an_unknown_outcome(self) -> None:
        scrip, card, reference = losing("b", sends=True), voucher(), fresh("order")
        with self.assertRaises(UnknownOutcomeError) as caught:
            scrip.redeem(card.code, card.pin, 5, reference=reference)
        with self.assertRaises(UnknownOutcomeError):
            caught.exception.resolve()
        scrip.is_down = False
        self.assertTrue(caught.exception.resolve().replayed)
        self.assertEqual(client().balance(card.code, card.pin).balance, 20)


class Arguments(unittest.TestCase):
    def refused(self, call: Any, code: str) -> None:
        with self.assertRaises(ScripError) as caught:
            call()
        self.assertEqual(caught.exception.code, code)

    def test_are_refused_before_they_are_sent(self) -> None:
        scrip = client("a", base_url="http://127.0.0.1:1")
        code, pin = "482913057641", "0731"
        for amount in (0.1 + 0.2, 5.0, "5", None, True):
            self.refused(lambda: scrip.redeem(code, pin, amount), "invalidRequest")  # type: ignore[arg-type]
        for wrong_amount in ("NaN", "Infinity", "-1", "0", "-0", "0.00001", "1000000000000000"):
            self.refused(lambda: scrip.redeem(code, pin, Decimal(wrong_amount)), "invalidAmount")
        self.refused(lambda: scrip.update_redemption("x", Decimal("-0")), "invalidAmount")
        for wrong in (None, 7, "48291305764", "48291305764x", "٤٨٢٩١٣٠٥٧٦٤١"):
            self.refused(lambda: scrip.balance(wrong, pin), "invalidRequest")  # type: ignore[arg-type]
        for reference in ("", ".", "..", "NEW-1", "CANCEL-1", "a\nb", "\ud800", "x" * 101):
            self.refused(lambda: scrip.redeem(code, pin, 1, reference=reference), "invalidReference")
            self.refused(lambda: scrip.undo(reference), "invalidReference")
        self.refused(lambda: client("b").reverse_redemption("x"), "unsupportedRequest")
        self.refused(lambda: client(portal_token=None).undo("x"), "unauthorized")
        with self.assertRaises(ValueError):
            client(base_url="ftp://x")

    def test_of_the_service_become_errors_without_secrets(self) -> None:
        card = voucher()
        wrong = "0000" if card.pin != "0000" else "0001"
        with self.assertRaises(ScripError) as caught:
            client().redeem(card.code, wrong, 1, reference="shown")
        self.assertEqual((caught.exception.code, caught.exception.reference), ("invalidPin", "shown"))
        self.assertIsNotNone(caught.exception.request_id)
        for secret in (card.code, os.environ["SCRIP_SECRET"]):
            self.assertNotIn(secret, str(vars(caught.exception)) + str(caught.exception))
        self.refused(lambda: client(secret="wrong").transactions(), "unauthorized")
        self.refused(lambda: client(portal_token="wrong").undo("x"), "unauthorized")
        self.refused(
            lambda: client(base_url="http://127.0.0.1:1", max_attempts=2).transactions(), "networkFailure"
        )


class Recovery(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.store = FileStore(os.path.join(self.folder.name, "calls"))

    def names(self) -> list[str]:
        return sorted(os.listdir(os.path.join(self.folder.name, "calls")))

    def test_finds_gives_up_and_repeats(self) -> None:
        card = voucher()
        secrets = (card.code, f'"{card.pin}"', os.environ["SCRIP_SECRET"])
        booked, lost, batch, reversal = fresh("booked"), fresh("lost"), fresh("batch"), fresh("reversal")
        client().redeem(card.code, card.pin, 3, reference=reversal)
        gone = losing("a", sends=False, pending=self.store)
        for call in (
            lambda: losing("a", sends=True, pending=self.store).redeem(
                card.code, card.pin, 5, reference=booked
            ),
            lambda: gone.redeem(card.code, card.pin, Decimal("5.25"), reference=lost),
            lambda: gone.generate(quantity=1, value=5, product_code="DEFAULT", reference=batch),
            lambda: gone.reverse_redemption(reversal),
        ):
            self.assertRaises(UnknownOutcomeError, call)
        for name in self.names():
            path = os.path.join(self.folder.name, "calls", name)
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            for secret in secrets:
                self.assertNotIn(secret, text)
        self.assertEqual(len(self.names()), 4)
        elsewhere = client("a", base_url="http://127.0.0.1:1", pending=self.store)
        self.assertEqual({each.outcome for each in elsewhere.recover()}, {"unknown"})
        recorded: dict[str, str] = {}
        scrip = client("a", pending=self.store)
        scrip.recover(record=lambda each: recorded.update({each.call.reference: each.outcome}))
        self.assertEqual(recorded, {booked: "done", lost: "not-done", batch: "done", reversal: "done"})
        self.assertEqual((scrip.recover(), self.names()), ([], []))
        self.assertEqual(scrip.balance(card.code, card.pin).balance, 20)

    def test_says_that_a_file_is_damaged(self) -> None:
        for reference in ("one", "two"):
            self.store.put(PendingCall("redeem", reference, "http://x", "a", "now", Decimal(5), None))
        path = os.path.join(self.folder.name, "calls", self.names()[0])
        with open(path, "r+", encoding="utf-8") as file:
            file.truncate(90)
        with open(f"{path}.{uuid.uuid4()}", "w", encoding="utf-8"):
            pass
        with self.assertRaises(DamagedStoreError) as caught:
            client(pending=self.store).recover()
        self.assertIn(path, str(caught.exception))
        self.assertEqual((len(caught.exception.calls), len(self.names())), (1, 2))

    def test_keeps_what_an_earlier_copy_left_unknown(self) -> None:
        card, reference = voucher(), fresh("order")
        lost = losing("b", sends=False, pending=self.store)
        self.assertRaises(UnknownOutcomeError, lost.redeem, card.code, card.pin, 5, reference=reference)
        # A refusal of the key says nothing of the first copy.
        stranger = client("b", secret="wrong", pending=self.store)
        self.assertRaises(UnknownOutcomeError, stranger.redeem, card.code, card.pin, 5, reference=reference)
        self.assertEqual(len(self.names()), 1)
        client("b", pending=self.store).redeem(card.code, card.pin, 5, reference=reference)
        self.assertEqual(self.names(), [])

    def test_sends_nothing_that_cannot_be_kept(self) -> None:
        with open(os.path.join(self.folder.name, "file"), "w", encoding="utf-8"):
            pass
        card = voucher()
        full = client("b", pending=FileStore(os.path.join(self.folder.name, "file")))
        with self.assertRaises(ScripError) as caught:
            full.redeem(card.code, card.pin, 5)
        self.assertEqual(caught.exception.code, "storeFailure")
        self.assertEqual(client().balance(card.code, card.pin).balance, 25)


class Module(unittest.TestCase):
    def test_exports_what_it_names(self) -> None:
        for name in scrip_client.__all__:
            self.assertTrue(hasattr(scrip_client, name), name)


if __name__ == "__main__":
    unittest.main()
