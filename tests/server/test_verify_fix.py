"""verify_fix, runs and reports as a caller meets them, with a stand-in for the probe."""

import json
import os
import re
import time
from html.parser import HTMLParser

import pytest

from warp_debug_gradients import report, runs
from warp_debug_gradients.errors import UsageError
from warp_debug_gradients.operations.baseline import BaselineError
from warp_debug_gradients.operations.bisect_steps import bisect_steps
from warp_debug_gradients.operations.gradcheck import gradcheck_full_horizon
from warp_debug_gradients.operations.verify_fix import verify_fix
from warp_debug_gradients.render import render
from warp_debug_gradients.schemas import BisectStepsRequest, GradcheckRequest, VerifyFixRequest

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("fake_probe")]


async def check(workspace, **settings):
    return await gradcheck_full_horizon(GradcheckRequest(**settings), workspace)


async def verify(workspace, **settings):
    return await verify_fix(VerifyFixRequest(**settings), workspace)


def repair(workspace, name="wrong.py"):
    script = workspace.root / name
    script.write_text(script.read_text() + "repaired = True\n")


# --- outcomes


async def test_fixed(workspace):
    await bisect_steps(BisectStepsRequest(script="wrong.py"), workspace)
    baseline = await check(workspace, script="wrong.py")
    repair(workspace)
    result = await verify(workspace)
    assert (result.outcome, result.exit_code, result.verdict) == ("fixed", 0, "agree"), result.message
    assert result.baseline.run_id == baseline.run_id
    assert (result.before.autodiff, result.after.autodiff) == (-0.238, -0.2998)
    assert [f.file for f in result.files] == ["wrong.py"]
    assert "+repaired = True" in result.diff
    assert result.ledger_before.jumps
    assert result.causes_before
    assert result.workflow.after.health == "decreasing"
    assert result.next is None
    for path in (result.report, result.report_html):
        assert (workspace.root / path).is_file()
        assert path in render(result)
    assert len(render(result)) < 4500


async def test_not_fixed_says_that_nothing_that_is_loaded_has_changed(workspace):
    await check(workspace, script="wrong.py")
    result = await verify(workspace)
    assert (result.outcome, result.exit_code, result.reason) == ("not_fixed", 1, "nothing_changed")
    assert result.causes
    assert result.causes[0].code in result.message


async def test_an_edit_that_is_not_loaded_is_not_judged(workspace):
    await check(workspace, script="wrong.py")
    elsewhere = workspace.root / "elsewhere.py"
    elsewhere.write_text("repaired = True\n")
    later = time.time() + 5.0
    os.utime(elsewhere, (later, later))
    result = await verify(workspace)
    assert (result.outcome, result.exit_code, result.reason) == ("inconclusive", 4, "edit_not_loaded")
    assert result.edited_elsewhere == ["elsewhere.py"]
    assert "elsewhere.py" in result.message
    assert result.verdict == "disagree"
    assert result.causes


async def test_a_file_that_is_only_touched_is_not_edited(workspace):
    """Written again with the same content: by a formatter, a checkout, an editor."""
    elsewhere = workspace.root / "elsewhere.py"
    elsewhere.write_text("repaired = False\n")
    await check(workspace, script="wrong.py")
    later = time.time() + 5.0
    os.utime(elsewhere, (later, later))
    result = await verify(workspace)
    assert (result.outcome, result.reason, result.edited_elsewhere) == ("not_fixed", "nothing_changed", [])
    elsewhere.write_text("repaired = True\n")
    os.utime(elsewhere, (1.0, 1.0))  # copied with its old date
    result = await verify(workspace)
    assert (result.reason, result.edited_elsewhere) == ("edit_not_loaded", ["elsewhere.py"])


async def test_a_program_that_does_not_run_any_more(workspace, fakes):
    await check(workspace, script="wrong.py")
    result = await verify(workspace)
    assert result.outcome == "not_fixed"
    (workspace.root / "wrong.py").unlink()
    with pytest.raises(UsageError, match=r"no script wrong\.py"):
        await verify(workspace)


async def test_a_verification_can_be_the_baseline_of_the_next(workspace):
    baseline = await check(workspace, script="wrong.py")
    first = await verify(workspace)
    again = await verify(workspace, baseline=first.run_id)
    assert again.baseline.run_id == baseline.run_id


# --- refusals


async def test_without_a_baseline(workspace):
    with pytest.raises(BaselineError, match="no check that disagreed"):
        await verify(workspace)
    right = await check(workspace, script="right.py")
    with pytest.raises(BaselineError, match="no check that disagreed"):
        await verify(workspace)
    with pytest.raises(BaselineError, match="measured no wrong gradient"):
        await verify(workspace, baseline=right.run_id)


async def test_an_unknown_baseline_names_the_known_ones(workspace):
    known = await check(workspace, script="wrong.py")
    for run_id in ("20260101T000000-gradcheck-full-horizon-abcdef", "../../etc", "x"):
        with pytest.raises(UsageError, match=known.run_id):
            await verify(workspace, baseline=run_id)


@pytest.mark.parametrize(
    ("stated", "word"),
    [
        ({"script": "right.py"}, "script: 'right.py' here, 'wrong.py' in the baseline"),
        ({"overrides": {"wrong.STEPS": 4}}, "overrides"),
        ({"iteration": 2}, "iteration: 2 here"),
        ({"objective": "loss / 2"}, "objective"),
        ({"args": ["--short"]}, "args"),
    ],
)
async def test_other_settings_are_refused_by_name(workspace, stated, word):
    await check(workspace, script="wrong.py")
    before = len(runs.all_runs(workspace))
    with pytest.raises(BaselineError, match=re.escape(word)):
        await verify(workspace, **stated)
    assert len(runs.all_runs(workspace)) == before


async def test_the_same_settings_may_be_stated(workspace):
    await check(workspace, script="wrong.py", overrides={"wrong.STEPS": 8}, iteration=0)
    result = await verify(workspace, script="wrong.py", overrides={"wrong.STEPS": 8}, iteration=0)
    assert result.outcome == "not_fixed"
    job = json.loads((workspace.root / result.evidence / "evaluate.job.json").read_text())
    assert job["overrides"] == {"wrong.STEPS": 8}
    full = json.loads((workspace.root / result.evidence / "workflow.job.json").read_text())
    assert full["overrides"] == {}
    rerun = (workspace.root / result.evidence / "rerun.sh").read_text()
    assert f"--baseline {result.baseline.run_id}" in rerun


# --- the list of runs


async def test_runs_are_listed_and_removed_only_by_name(workspace):
    results = [await check(workspace, script="wrong.py") for _ in range(3)]
    (workspace.root / ".warp-debug-gradients" / "runs" / "mine").mkdir()
    assert [r.run_id for r in results] == [run.run_id for run in runs.all_runs(workspace)]  # oldest first
    assert runs.all_runs(workspace)[0].row()["verdict"] == "disagree"
    (gone,) = runs.remove(workspace, [results[0].run_id])
    assert not gone.folder.exists()
    assert len(runs.all_runs(workspace)) == 2
    for name in ("mine", "..", "../../project", results[0].run_id):
        with pytest.raises(UsageError, match="There is no run"):
            runs.remove(workspace, [results[1].run_id, name])
    assert len(runs.all_runs(workspace)) == 2


async def test_the_oldest_runs_are_offered_above_the_limit(workspace, monkeypatch):
    first = await check(workspace, script="wrong.py")
    assert runs.offer(workspace) is None
    monkeypatch.setattr(runs.removable, "__defaults__", (1000,))
    second = await check(workspace, script="wrong.py")
    (note,) = [n for n in second.notes if "could go" in n]
    assert f"--remove {first.run_id}" in note
    assert second.run_id not in note
    assert len(runs.all_runs(workspace)) == 2


async def test_only_records_of_a_run_can_be_read(workspace):
    result = await check(workspace, script="wrong.py")
    assert json.loads(runs.read_record(workspace, result.run_id, "result.json"))["run_id"] == result.run_id
    (workspace.root / result.evidence / "out.txt").symlink_to(workspace.root / "wrong.py")
    for name in ("../../index.jsonl", "sources/wrong.py", "nothing.json", "out.txt", ""):
        with pytest.raises(UsageError, match="has no record"):
            runs.read_record(workspace, result.run_id, name)


# --- the report


class Page(HTMLParser):
    """Checks that tags are closed in order, and collects links and text."""

    VOID = {"meta", "link", "br", "img", "hr"}

    def __init__(self):
        super().__init__()
        self.open, self.links, self.text = [], [], []

    def handle_starttag(self, tag, attributes):
        self.links += [v for k, v in attributes if k in ("href", "src") and not str(v).startswith(("#", "data:"))]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


async def test_the_report_is_whole_and_made_from_the_json_alone(workspace):
    script = workspace.root / "wrong.py"
    script.write_text(script.read_text() + "# <script>alert(1)</script> | pipe\n")
    await bisect_steps(BisectStepsRequest(script="wrong.py"), workspace)
    await check(workspace, script="wrong.py")
    repair(workspace)
    script.write_text(script.read_text().replace("<script>", "<SCRIPT>"))
    result = await verify(workspace)
    folder = workspace.root / result.evidence
    first = [path.read_text() for path in report.paths(folder)]
    for path in report.paths(folder):
        path.unlink()
    script.unlink()
    assert [path.read_text() for path in report.write(folder)] == first
    page = Page()
    page.feed(first[1])
    assert page.open == []
    assert page.links == []
    text = " ".join(page.text)
    words = ("Fixed", "Root cause", "overwrite", "Before and after", "-0.238", "+repaired = True", "What was not looked at",
             "rerun.sh", "Warp 1.19.0", "<SCRIPT>")  # fmt: skip
    for word in words:
        assert word in text, word
    assert "<SCRIPT>" not in first[1]
    ids = re.findall(r'\bid="([^"]+)"', first[1])
    assert len(ids) == len(set(ids))
    assert first[1].count("<svg") == 3
    assert "prefers-color-scheme: dark" in first[1]
    assert "@media print" in first[1]
    for word in ("# Fixed", "## Root cause", "```diff", "| AD |"):
        assert word in first[0], word


@pytest.mark.parametrize("script", ["wrong.py", "right.py", "broken.py", "nobackward.py", "diverges.py"])
async def test_every_result_has_a_report(workspace, script):
    result = await check(workspace, script=script)
    markdown, html = report.write(workspace.root / result.evidence)
    assert result.message in markdown.read_text()
    page = Page()
    page.feed(html.read_text())
    assert page.open == []


async def test_no_report_without_a_result(tmp_path):
    with pytest.raises(UsageError, match=r"no result\.json"):
        report.write(tmp_path)
