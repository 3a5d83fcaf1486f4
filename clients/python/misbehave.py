"""Runs the client against the misbehaving server of the conformance kit:

    npx scrip-conformance --misbehave --port 4300
    SCRIP_BASE_URL=http://127.0.0.1:4300 … python3 misbehave.py

The kit prints the settings to use. It also prints the verdict, when this program has reported its outcomes.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

from scrip_client import Scrip, ScripError, UnknownOutcomeError, Variant

BASE_URL = os.environ["SCRIP_BASE_URL"]
VARIANT: Variant = "b" if os.environ.get("SCRIP_VARIANT") == "b" else "a"
THREADS = 32


def client(max_attempts: int) -> Scrip:
    return Scrip(
        BASE_URL,
        os.environ["SCRIP_KEY_ID"],
        os.environ["SCRIP_SECRET"],
        VARIANT,
        portal_token=os.environ["SCRIP_PORTAL_TOKEN"],
        attempt_timeout=2.0,
        deadline=600.0,
        max_attempts=max_attempts,
        retry_delay=0.002,
    )


PATIENT = client(30)
HASTY = client(1)


def outcome_of(task: Mapping[str, Any]) -> str:
    """What became of a task: paid, refused, undone or unknown."""
    is_hasty = task["operation"] == "give-up"
    scrip = HASTY if is_hasty else PATIENT
    try:
        scrip.redeem(task["code"], task["pin"], task["amount"], reference=task["reference"])
        return "paid"
    except UnknownOutcomeError as error:
        try:
            if is_hasty:
                PATIENT.undo(task["reference"])
                return "undone"
            error.resolve()
            return "paid"
        except UnknownOutcomeError:
            return "unknown"
        except ScripError:
            return "refused"
    except ScripError:
        return "refused"


def request(path: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(BASE_URL + path, data)) as response:
        return json.loads(response.read(), parse_float=Decimal)


def main() -> int:
    tasks = request("/tasks")["tasks"]
    for task in tasks:
        task["amount"] = Decimal(task["amount"])
    with ThreadPoolExecutor(THREADS) as threads:
        outcomes = list(threads.map(outcome_of, tasks))
    reported = [
        {"reference": task["reference"], "outcome": outcome} for task, outcome in zip(tasks, outcomes)
    ]
    verdict = request("/outcomes", reported)
    return 0 if verdict["doubled"] == verdict["unknown"] == verdict["wrong"] == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
