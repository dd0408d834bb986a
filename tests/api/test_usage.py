"""Tokens and cost of model calls of a complete box: the record, the report, the command, the
records of tasks and reviews, and the metrics; the same after programs were killed."""

import json
import sqlite3
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
from commandline import agentbox
from helpers import until
from support.model_server import ModelServer
from support.model_turns import ModelTurn
from support.story_box import StoryBox

MANIFEST = """
[providers.models]
enabled = true
kind = "openai"
base_url = "{url}/v1"
env_var = "MODEL_KEY"
max_concurrent = 8
[providers.models.prices."small-*"]
input = "0.5"
output = "2"
cache_read = "0.05"
[providers.models.prices."large-1"]
input = "3"
output = "15.000001"
[agents.coder]
command = ["sh", "-c", 'echo "$AGENTBOX_TOKEN"; exec sleep 1000']
provider = "models"
workspace = "direct"
max_instances = 4
llm.max_concurrent = 8
"""
SCRIPT = """
import json, os, pathlib, time, urllib.request
while time.process_time() < 0.4: pass
body = json.dumps({"model": "small-1", "messages": [{"role": "user", "content": "Hi."}]}).encode()
call = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body)
call.add_header("Authorization", "Bearer " + os.environ["OPENAI_API_KEY"])
call.add_header("Content-Type", "application/json")
urllib.request.build_opener(urllib.request.ProxyHandler({})).open(call).read()
pathlib.Path("made.txt").write_text("x")
"""
WORKER = f"""
[agents.worker]
command = ["python3", "-c", {json.dumps(SCRIPT)}]
provider = "models"
"""
MONEY = f'{MANIFEST}llm.max_cost = "0.02"\n'
CAP = 20_000  # micro-units
TEXT = "word " * 40


def ask(model: str, **members: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": "Hi."}], **members}


class Caller:
    """An agent of the box that calls models."""

    def __init__(self, box: StoryBox, agent: str = "coder") -> None:
        self.agent_id = box.client.agents.spawn({"name": agent, "agent": agent}).agent_id
        self._url = f"http://127.0.0.1:{box.port}/llm/models/chat/completions"
        self.token = until(lambda: _output(box, self.agent_id), 30)

    def chat(self, model: str, **members: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.post(
            self._url, json=ask(model, **members), headers=headers, trust_env=False, timeout=30
        )

    def stream(self, model: str) -> str:
        """ "whole", "cut", or "refused"."""
        headers = {"Authorization": f"Bearer {self.token}"}
        try:
            done = httpx.post(
                self._url,
                json=ask(model, stream=True, max_tokens=400),
                headers=headers,
                trust_env=False,
                timeout=30,
            )
        except httpx.HTTPError:
            return "cut"
        return "whole" if done.status_code == 200 else "refused"


def _output(box: StoryBox, agent_id: str) -> str:
    items = box.client.agents.stream(agent_id, follow=False)
    return b"".join(item.data for item in items if item.kind == "stdout").decode().strip()


def _database(box: StoryBox) -> Path:
    return box.api.paths.slot("gateway") / "budgets.db"


def rows(box: StoryBox) -> list[dict[str, Any]]:
    """All rows of the record, as the gateway stored them."""
    with sqlite3.connect(_database(box)) as db:
        db.row_factory = sqlite3.Row
        return [dict(row) for row in db.execute("SELECT * FROM model_calls ORDER BY at")]


def test_a_call_is_a_row_and_every_report_has_it(tmp_path: Path) -> None:
    """The cost by the prices of the manifest, in integers, rounded up; a model without a price has
    none."""
    with (
        ModelServer(reply=lambda _turns, _body: ModelTurn(text=TEXT)) as server,
        StoryBox(tmp_path, server.url, MANIFEST, {"MODEL_KEY": "k" * 20}) as box,
    ):
        assert box.client.usage.report().items == ()
        coder = Caller(box)
        used = {
            model: coder.chat(model).json()["usage"] for model in ("small-1", "large-1", "other")
        }
        stored = until(lambda: (now := rows(box)) and not any(r["estimated"] for r in now) and now)
        assert [(row["model"], row["cost"], row["pattern"]) for row in stored] == [
            ("small-1", _cost(used["small-1"], 500_000, 2_000_000), "small-*"),
            ("large-1", _cost(used["large-1"], 3_000_000, 15_000_001), "large-1"),
            ("other", None, ""),
        ]
        report = box.client.usage.report(by="model")
        assert [row.key for row in report.items] == [
            "models/large-1",
            "models/small-1",
            "models/other",
        ]
        assert [row.cost_micros for row in report.items] == [
            stored[1]["cost"],
            stored[0]["cost"],
            None,
        ]
        (total,) = report.total
        assert (total.calls, total.unpriced, total.currency) == (3, 1, "USD")
        shown = agentbox(box.api, "usage", "--by", "agent", "--since", "1h").stdout.decode()
        assert "coder" in shown, agentbox(box.api, "usage", "--since", "1h").stderr
        assert "1 without a price" in shown
        assert box.client.usage.report(by="day").total == report.total


def _cost(usage: dict[str, int], read: int, written: int) -> int:
    parts = usage["prompt_tokens"] * read + usage["completion_tokens"] * written
    return -(-parts // 1_000_000)


def test_rows_ledger_and_server_agree_over_kills(tmp_path: Path) -> None:
    """SIGKILL of the gateway and of the API in the middle of parallel streams: the rows are what the
    ledger charged, and a row that the provider counted is what it counted. A stream that was cut by
    the kill costs its worst case, at least what the provider counted, and the budget holds."""
    reply = ModelTurn(text=TEXT, tokens=300)
    with (
        ModelServer(reply=lambda _turns, _body: reply, pause=0.02) as server,
        StoryBox(tmp_path, server.url, MONEY, {"MODEL_KEY": "k" * 20}) as box,
    ):
        callers = [Caller(box), Caller(box)]
        whole = 0
        for killed in (box.gateway, box.api, box.gateway):
            with ThreadPoolExecutor(6) as pool:
                streams = [pool.submit(caller.stream, "small-1") for caller in callers * 3]
                until(lambda: server.running >= 4)
                killed.kill()
                outcomes = [stream.result() for stream in streams]
            assert ("cut" in outcomes) == (killed is box.gateway)
            whole += outcomes.count("whole")
            killed.start()
        until(lambda: callers[0].stream("small-1") == "whole")
        until(lambda: sum(not row["estimated"] for row in rows(box)) == whole + 1)
        stored = rows(box)
        with sqlite3.connect(_database(box)) as db:
            ((tokens, calls, cost),) = db.execute("SELECT tokens, calls, cost FROM accounts")
        assert cost == sum(row["cost"] for row in stored) <= CAP
        assert tokens == sum(row["input"] + row["output"] for row in stored)
        assert calls >= len(stored)
        counted = sorted(reply.token_counts(request.body) for request in server.requests)
        exact = sorted((row["input"], row["output"]) for row in stored if not row["estimated"])
        assert not list(Counter(exact) - Counter(counted)), (
            "what was counted is the provider's count"
        )
        assert len(stored) >= len(counted), "every request of the provider is a row"
        assert sum(row["input"] + row["output"] for row in stored) >= sum(map(sum, counted))
        (total,) = box.client.usage.report(by="day").total
        assert (total.calls, total.cost_micros) == (len(stored), cost)
        labels = '{agent="coder",model="small-*",provider="models"}'
        sample = f"agentbox_llm_cost_micros_total{labels} {float(cost)}"
        until(lambda: sample in httpx.get(f"{box.api.metrics_url}/metrics", trust_env=False).text)
        over = until(lambda: (answer := callers[0].chat("small-1")).status_code == 429 and answer)
        assert over.json()["error"]["code"] == "insufficient_quota"
        assert "over the model budget of coder" in over.json()["error"]["message"]
        assert sum(row["cost"] for row in rows(box)) <= CAP


def test_the_records_of_a_task_and_its_review_have_their_usage(tmp_path: Path) -> None:
    """Tokens and cost of the calls of the task's agent, its wall clock and CPU time, and its memory."""
    with (
        ModelServer(reply=lambda _turns, _body: ModelTurn(text=TEXT)) as server,
        StoryBox(tmp_path, server.url, MANIFEST + WORKER, {"MODEL_KEY": "k" * 20}) as box,
    ):
        submitted = box.client.submit_task({"name": "worker", "agent": "worker"})
        items = list(box.client.task_logs(submitted.task_id))
        task = items[-1]
        assert task.state == "succeeded", box.logs()
        task = until(lambda: (now := box.client.get_task(task.task_id)).models and now)
        (row,) = until(lambda: not rows(box)[0]["estimated"] and rows(box))
        assert row["task"] == row["session_id"] == task.task_id
        task = box.client.get_task(task.task_id)
        assert (task.models.calls, task.models.cost_micros) == (1, row["cost"])
        assert task.usage["wall_seconds"] >= 0.4
        assert 0.3 <= task.usage["cpu_seconds"] < 20
        assert (task.usage["peak_memory"] or 1 << 20) >= 1 << 20
        (review,) = box.client.reviews.list().items
        assert review.agent_id == task.agent_id
        assert review.models == task.models
        assert review.usage == task.usage
        assert box.client.reviews.show(review.agent_id).summary.models == task.models
        (report,) = box.client.usage.report(by="task").items
        assert (report.key, report.cost_micros) == (task.task_id, row["cost"])
        shown = agentbox(box.api, "task", "show", task.task_id).stdout.decode()
        assert "1 call" in shown
