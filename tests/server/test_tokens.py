"""What an agent pays for: tokens (a quarter of the characters) of the list of tools and of each tool's answer.

Printed and kept: golden/tokens.json has the last counts, UPDATE_SNAPSHOTS=1 writes them anew. A count may move by a
tenth; a change beyond that shows in review.
"""

import json
import os
import sys

import pytest
from mcp import Client, StdioServerParameters

from warp_debug_gradients.schemas import BisectStepsResult, Cause, Jump, Observation, Overwrite
from warp_debug_gradients.trim import payload

pytestmark = pytest.mark.anyio
MOST, LIST = 1500, 4000
CALLS = {  # in this order: verify_fix takes the check that disagreed as its baseline
    "scan_patterns": {"script": "wrong.py"},
    "run_repro": {"script": "wrong.py"},
    "enable_tracker": {"script": "wrong.py"},
    "bisect_steps": {"script": "wrong.py"},
    "gradcheck_full_horizon": {"script": "wrong.py"},
    "diagnose": {"script": "wrong.py"},
    "verify_fix": {},
}


def tokens(value):
    return len(value if isinstance(value, str) else json.dumps(value)) // 4


async def test_tokens(project, fakes, request, capsys):
    environment = {
        "WARP_DEBUG_GRADIENTS_WORKSPACE": str(project),
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        "PATH": os.environ["PATH"],
    }
    server = StdioServerParameters(command=sys.executable, args=[str(fakes / "command.py"), "serve"], env=environment)
    found = {}
    async with Client(server) as client:
        tools = [t.model_dump(mode="json", by_alias=True, exclude_none=True) for t in (await client.list_tools()).tools]
        found["tools/list"] = sum(tokens({k: v for k, v in t.items() if k != "outputSchema"}) for t in tools)
        assert {t["name"] for t in tools} == set(CALLS)
        for name, arguments in CALLS.items():
            for detail in ("concise", "full"):
                answer = await client.call_tool(name, {**arguments, "detail": detail})
                assert not answer.is_error, answer.content[0].text
                found[f"{name}, {detail}, text"] = tokens(answer.content[0].text)
                found[f"{name}, {detail}, structured"] = tokens(answer.structured_content)
    with capsys.disabled():
        print()
        for what, count in found.items():
            print(f"{count:6d} tokens  {what}")
    assert found["tools/list"] < LIST
    assert {k: n for k, n in found.items() if "concise" in k and n > MOST} == {}
    golden = request.path.parent / "golden" / "tokens.json"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        golden.write_text(json.dumps(found, indent=1) + "\n")
    kept = json.loads(golden.read_text())
    assert set(kept) == set(found)
    assert {k: (kept[k], n) for k, n in found.items() if abs(n - kept[k]) > 0.1 * kept[k] + 5} == {}


def test_a_bulky_result_is_cut_step_by_step_and_says_so():
    row = {"variable": "state", "argument": "u", "op": 1, "ops": 20, "harmful": True}
    causes = [Cause(code="overwrite", confidence="proven", evidence=["x" * 150] * 9) for _ in range(5)]
    whole = BisectStepsResult(
        run_id="r", operation="bisect_steps", evidence="e", status="completed", message="m", verdict="disagree",
        method="ledger", causes=causes, notes=["kept"],
        jumps=[Jump(kind="adjoint", kernel="k" * 30, share=1 / 3)] * 40,
        overwrites=[Overwrite.model_validate(row)] * 500, observations=[Observation(kind="note", message="y" * 90)] * 50,
    )  # fmt: skip
    short = payload(whole, "concise")
    assert tokens(short) <= MOST
    BisectStepsResult.model_validate(short)
    assert short["causes"][0]["code"] == "overwrite"  # the first cause stays, whatever goes
    assert short["jumps"][0]["share"] == 0.333333
    assert short["reason"] is None  # the headline is whole
    assert "seed" not in short
    assert short["notes"][0] == "kept"
    assert "jumps (6 of 40)" in short["notes"][1]
    assert short["notes"][2].startswith("Cut here to fit: ")
    assert "detail='full', or e/result.json" in short["notes"][2]
    assert payload(whole, "full") == whole.model_dump(mode="json")
