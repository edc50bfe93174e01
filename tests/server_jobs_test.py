#!/usr/bin/env python3
"""Jobs and tables of the service: what is said to be finished stays, and rows come in order.

server_jobs_test.py PROGRAM
"""
import concurrent.futures
import contextlib
import csv
import http.client
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

import server_test
from server_test import GPT2, Service

ASYNC = {"Prefer": "respond-async"}
PLAN = {"model": "gpt2", "gpu": "H100", "num_gpus": 2, "batch": 8}
LONG_PLAN = {"model": "gpt3_175", "cluster": "dgx-h100", "nodes": 64, "batch": 1536}
# As slow as builds with sanitizers on a machine with other work: nothing here waits as long otherwise.
PATIENCE_S = 300


def begin(service: Service, question: str, body, **headers: str) -> str:
    """The name of a new job."""
    status, found, text = service.ask("POST", f"/v1/{question}", body, **ASYNC, **headers)
    assert status == 202, (status, text)
    name = json.loads(text)["id"]
    assert found["Location"] == f"/v1/jobs/{name}", found["Location"]
    return name


def state(service: Service, name: str) -> dict:
    status, _, text = service.ask("GET", f"/v1/jobs/{name}")
    assert status == 200, (status, text)
    return json.loads(text)


def wait(service: Service, name: str, *states: str) -> dict:
    """Its state once it is one of these; at its end without any."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = state(service, name)
        if found["state"] in (states or ("done", "failed")):
            return found
        time.sleep(0.05)
    raise AssertionError(f"the job is {found}")


def gauge(service: Service, name: str) -> float:
    return next(float(line.rsplit(" ", 1)[1]) for line in service.ask("GET", "/metrics")[2].splitlines() if line.startswith(name + " "))


class Jobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = Service("--request-seconds", "600", "--job-threads", "2")

    @classmethod
    def tearDownClass(cls):
        cls.service.__exit__()

    def test_a_job_has_the_answer_of_its_request(self):
        name = begin(self.service, "plan", PLAN)
        self.assertTrue(re.fullmatch("[0-9a-f]{32}", name), name)
        found = wait(self.service, name)
        self.assertEqual((found["state"], found["status"], found["question"]), ("done", 200, "plan"))
        status, headers, text = self.service.ask("GET", found["result"])
        self.assertEqual((status, headers["Content-Type"]), (200, "application/json"))
        self.assertEqual(json.loads(text), self.service.post("plan", PLAN)[1])
        name = begin(self.service, "forecast?fields=latency_s", GPT2)
        wait(self.service, name)
        self.assertEqual(self.service.ask("GET", f"/v1/jobs/{name}/result")[2], self.service.ask("POST", "/v1/forecast?fields=latency_s", GPT2)[2])

    def test_a_report_of_a_job_runs_its_script(self):
        name = begin(self.service, "forecast?format=html", GPT2)
        wait(self.service, name)
        policies = [self.service.ask(*asked)[1]["Content-Security-Policy"]
                    for asked in (("GET", f"/v1/jobs/{name}/result"), ("POST", "/v1/forecast?format=html", GPT2))]
        self.assertEqual(policies[0], policies[1])
        self.assertIn("script-src 'sha256-", policies[0])

    def test_a_job_that_fails_has_the_problem(self):
        name = begin(self.service, "forecast", {"model": "gpt5", "gpu": "H100"})
        found = wait(self.service, name)
        self.assertEqual((found["state"], found["status"]), ("failed", 404))
        status, headers, text = self.service.ask("GET", found["result"])
        self.assertEqual((status, headers["Content-Type"]), (404, "application/problem+json"))
        self.assertIn("did you mean", json.loads(text)["detail"])

    def test_events(self):
        name = begin(self.service, "plan", {**PLAN, "batch": 16})
        status, headers, text = self.service.ask("GET", f"/v1/jobs/{name}", Accept="text/event-stream")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/event-stream"))
        events = [part.split("\n") for part in text.strip().split("\n\n") if not part.startswith(":")]
        self.assertEqual({lines[0] for lines in events}, {"event: state"})
        states = [json.loads(lines[1].removeprefix("data: ")) for lines in events]
        self.assertEqual(states[-1], state(self.service, name))
        self.assertEqual(states[-1]["state"], "done")
        for one in states:
            if "progress" in one:
                self.assertLessEqual(one["progress"]["done"], one["progress"]["total"])

    def test_deleting_cancels(self):
        names = [begin(self.service, "plan", {**LONG_PLAN, "batch": 1536 * (i + 1)}) for i in range(2)]
        for name in names:
            wait(self.service, name, "running")
        self.assertEqual(self.service.ask("GET", f"/v1/jobs/{names[0]}/result")[0], 409)
        for name in names:
            self.assertEqual(self.service.ask("DELETE", f"/v1/jobs/{name}")[0], 204)
            self.assertEqual(self.service.ask("GET", f"/v1/jobs/{name}")[0], 404)
        # Both threads are free again.
        self.assertEqual(wait(self.service, begin(self.service, "forecast", GPT2))["state"], "done")
        name = begin(self.service, "forecast", GPT2)
        wait(self.service, name)
        self.assertEqual(self.service.ask("DELETE", f"/v1/jobs/{name}")[0], 204)
        self.assertEqual(self.service.ask("GET", f"/v1/jobs/{name}/result")[0], 404)

    def test_a_deleted_job_ends_its_events(self):
        name = begin(self.service, "plan", LONG_PLAN)
        wait(self.service, name, "running")
        connection = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=PATIENCE_S)
        with contextlib.closing(connection):
            connection.request("GET", f"/v1/jobs/{name}", headers={"Accept": "text/event-stream"})
            events = connection.getresponse()
            self.assertIn(b'"state":"running"', events.readline() + events.readline())  # the job is deleted after this
            self.service.ask("DELETE", f"/v1/jobs/{name}")
            self.assertIn(b'"state":"cancelled"', events.read())

    def test_what_is_no_job(self):
        for name in ("", "x", "0" * 32, "0" * 33, "../lock", "..%2flock", "%00" * 32, "0" * 31 + "/", "0" * 32 + "/result", "0" * 32 + "/x"):
            for method in ("GET", "DELETE"):
                self.assertIn(self.service.ask(method, f"/v1/jobs/{name}")[0], (404, 405), name)
        name = begin(self.service, "forecast", GPT2)
        self.assertEqual(self.service.ask("POST", f"/v1/jobs/{name}", "{}")[0], 405)
        self.assertEqual(self.service.ask("POST", "/v1/nothing", "{}", **ASYNC)[0], 404)
        self.assertEqual(self.service.ask("GET", "/v1/gpus", **ASYNC)[0], 200)

    def test_their_number_is_bounded(self):
        with Service("--jobs", "3", "--job-threads", "1") as service:
            names = []
            for i in range(4):
                names.append(begin(service, "forecast", {**GPT2, "batch": i + 1}))
                wait(service, names[-1])
            self.assertEqual([service.ask("GET", f"/v1/jobs/{name}")[0] for name in names], [404, 200, 200, 200])
            waiting = [begin(service, "plan", LONG_PLAN) for _ in range(3)]
            status, headers, _ = service.ask("POST", "/v1/plan", LONG_PLAN, **ASYNC)
            self.assertEqual(status, 503)
            self.assertTrue(headers["Retry-After"])
            self.assertEqual(gauge(service, 'tilecast_jobs{state="finished"}'), 0)
            for name in waiting:
                service.ask("DELETE", f"/v1/jobs/{name}")


class Folder(unittest.TestCase):
    """--state DIR."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.state = os.path.join(self.folder.name, "jobs")

    def service(self, *words: str) -> Service:
        return Service("--state", self.state, "--request-seconds", "600", *words)

    def test_jobs_go_on_after_a_restart(self):
        with self.service() as service:
            done = begin(service, "forecast", GPT2)
            wait(service, done)
            answer = service.ask("GET", f"/v1/jobs/{done}/result")[2]
            running = begin(service, "plan", LONG_PLAN)
            wait(service, running, "running")
            waiting = begin(service, "forecast", {**GPT2, "batch": 5})
            start = time.monotonic()
        self.assertLess(time.monotonic() - start, PATIENCE_S)  # it does not wait for the plan
        with self.service("--job-threads", "2") as service:
            self.assertEqual(service.ask("GET", f"/v1/jobs/{done}/result")[2], answer)
            self.assertEqual(wait(service, waiting)["state"], "done")
            self.assertIn(state(service, running)["state"], ("running", "done"))
            for name in (done, running, waiting):
                self.assertEqual(service.ask("DELETE", f"/v1/jobs/{name}")[0], 204)
        self.assertEqual(os.listdir(self.state), ["lock"])

    def test_a_kill_loses_nothing_that_was_said(self):
        begun, finished = {}, {}
        for _ in range(4):
            service = self.service()
            with concurrent.futures.ThreadPoolExecutor(3) as pool:
                def client(number: int, service=service):
                    try:
                        for i in range(10_000):
                            batch = 1 + (number * 7919 + i) % 4096
                            name = begin(service, "forecast?fields=batch", {**GPT2, "batch": batch})
                            begun[name] = batch
                            if i % 3 == number and wait(service, name)["state"] == "done":
                                finished[name] = service.ask("GET", f"/v1/jobs/{name}/result")[2]
                    except (OSError, http.client.HTTPException, json.JSONDecodeError):
                        pass  # killed
                clients = [pool.submit(client, number) for number in range(3)]
                before, end = len(finished), time.monotonic() + PATIENCE_S
                while len(finished) < before + 3 and time.monotonic() < end:
                    time.sleep(0.01)
                service.process.kill()
                for one in clients:
                    one.result()
            service.__exit__()
        self.assertGreater(len(finished), 11)
        with self.service() as service:
            for name, text in finished.items():
                self.assertEqual(service.ask("GET", f"/v1/jobs/{name}/result"), (200, unittest.mock.ANY, text))
            kept = {name: batch for name, batch in begun.items() if service.ask("GET", f"/v1/jobs/{name}")[0] == 200}
            self.assertEqual(len(kept), min(len(begun), 1000))
            for name, batch in list(kept.items())[-20:]:
                wait(service, name)
                self.assertEqual(json.loads(service.ask("GET", f"/v1/jobs/{name}/result")[2]), {"batch": batch})
            self.assertEqual([name for name in os.listdir(self.state) if name.endswith(".part")], [])

    def test_one_service_has_a_folder(self):
        with self.service():
            second = subprocess.run([server_test.PROGRAM, "serve", "--port", "0", "--state", self.state], capture_output=True, text=True)
            self.assertEqual(second.returncode, 1)
            self.assertIn("another service keeps its jobs there", second.stderr)
        self.assertEqual(os.stat(self.state).st_mode & 0o777, 0o700)

    def test_files_that_are_no_jobs(self):
        os.mkdir(self.state)
        good = '{"version": 1, "target": "/v1/forecast?fields=batch", "content_type": "", "accept": "", "created_s": 0, "runs": %d, "finished_s": 0, "seconds": 0, "status": 0, "result_type": ""}\n'
        for name, text in (("a" * 32, "{"), ("b" * 32, ""), ("c" * 32, '{"version": 2}\n'), ("x", good % 0), ("d" * 32, good % 0 + json.dumps(GPT2)),
                           ("e" * 32, good % 3 + json.dumps(GPT2)), ("f" * 32, (good % 0).replace("/v1/forecast", "x") + "{}")):
            with open(os.path.join(self.state, name + ".job"), "w") as file:
                file.write(text)
        with self.service() as service:
            self.assertEqual(service.ask("GET", "/v1/jobs/" + "a" * 32)[0], 404)
            wait(service, "d" * 32)
            self.assertEqual(json.loads(service.ask("GET", f"/v1/jobs/{'d' * 32}/result")[2]), {"batch": 4})
            self.assertEqual(wait(service, "e" * 32)["status"], 500)  # the service ended three times
            self.assertEqual(wait(service, "f" * 32)["status"], 404)


class Tables(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = Service("--request-seconds", "600")

    @classmethod
    def tearDownClass(cls):
        cls.service.__exit__()

    ROWS = [{"model": "gpt2", "gpu": "H100", "batch": 4}, {"model": "gpt2", "gpu": "T4", "batch": 2, "mode": "training"},
            {"model": "llama-3.2-1b", "gpu": "L4", "prompt": 64, "output": 8}, {"model": "gpt5", "gpu": "T4"}, {"model": "gpt2", "gpu": "T4"}]

    def ask(self, rows, target: str = "/v1/forecast_many", **headers: str):
        text = rows if isinstance(rows, (str, bytes)) else "".join(json.dumps(row) + "\n" for row in rows)
        return self.service.ask("POST", target, text, **headers)

    def test_rows_are_forecasts_in_order(self):
        status, headers, text = self.ask(self.ROWS)
        self.assertEqual((status, headers["Content-Type"], headers["Transfer-Encoding"]), (200, "application/x-ndjson", "chunked"))
        rows = [json.loads(line) for line in text.splitlines()]
        self.assertEqual(len(rows), 5)
        for row, asked in zip(rows, self.ROWS, strict=True):
            status, answer = self.service.post("forecast", asked)
            if status == 200:
                self.assertEqual(row["latency_s"], answer.get("latency_s", answer.get("latency")), asked)
                self.assertIsNone(row["error"])
            else:
                self.assertEqual(row["error"], answer["detail"])

    def test_csv(self):
        names = ["model", "gpu", "batch", "mode", "prompt", "output"]
        asked = io.StringIO()
        writer = csv.DictWriter(asked, names)
        writer.writeheader()
        writer.writerows(self.ROWS)
        status, headers, text = self.ask(asked.getvalue(), Content_Type="text/csv")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/csv; charset=utf-8"))
        rows = list(csv.DictReader(io.StringIO(text)))
        lines = [json.loads(line) for line in self.ask(asked.getvalue(), Content_Type="text/csv", Accept="application/x-ndjson")[2].splitlines()]
        self.assertEqual([row["latency_s"] and float(row["latency_s"]) for row in rows], [line["latency_s"] or "" for line in lines])
        self.assertEqual([row["error"] for row in rows], [line["error"] or "" for line in lines])
        self.assertEqual(lines, [json.loads(line) for line in self.ask(self.ROWS)[2].splitlines()])
        chosen = self.ask(self.ROWS, "/v1/forecast_many?fields=latency_s,error", Accept="text/csv")[2].splitlines()
        self.assertEqual(chosen[0], "latency_s,error")
        self.assertEqual([line.split(",")[0] for line in chosen[1:]], [row["latency_s"] for row in rows])

    def test_a_failed_row_says_why(self):
        lines = ['{"model": "gpt2", "gpu": "H100"}', "{", "[1]", '{"modell": "gpt2"}', '{"model": "gpt2", "gpu": "H100", "batch": [1]}', "",
                 '{"model": {"model_type": "x"}, "gpu": "H100"}', '{"gpu": "H100"}', '{"model": "/etc/passwd", "gpu": "H100"}', '{"model": "gpt2", "gpu": "H100"}']
        rows = [json.loads(line) for line in self.ask("\r\n".join(lines))[2].splitlines()]
        for row, words in zip(rows, (None, "row 2", "expected an object", "is no option of a forecast; did you mean", "`batch`", "model_type", "`model` is missing", "no such file", None), strict=True):
            self.assertEqual(row["latency_s"] is None, words is not None, row)
            if words:
                self.assertIn(words, row["error"])
        rows = self.ask("model,gpu\ngpt2,H100\ngpt2\n\"{\"\"model_type\"\":\n\"\"gpt2\"\"}\",T4\n", Accept="application/x-ndjson")[2].splitlines()
        self.assertEqual([json.loads(row)["error"] for row in rows], [None, "row 2: 1 cells, expected 2 as in the header", "config: 'n_embd': is missing"])

    def test_a_whole_table_that_is_wrong(self):
        for text, target, headers, status in (("modell,gpu\n", "", {}, 400), ("model,model\n", "", {}, 400), ("model\n", "?fields=latency", {}, 400),
                                              ("model\n", "", {"Content_Type": "application/vnd.apache.arrow.stream"}, 415)):
            self.assertEqual(self.ask(text, "/v1/forecast_many" + target, **headers)[0], status, text)
        self.assertEqual(self.ask("model,gpu\n", Accept="text/csv")[2].count("\n"), 1)
        head = "POST /v1/forecast_many HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
        self.assertTrue(self.service.raw((head % (65 << 20)).encode()).startswith(b"HTTP/1.1 413"))
        self.assertEqual(self.service.ask("GET", "/v1/forecast_many")[0], 405)

    def test_many_rows(self):
        """More than a block has; HTTP/1.0 knows no chunks."""
        count = 70_000
        text = "model,gpu,batch\n" + "".join(f"gpt2,T4,{1 + i % 50}\n" for i in range(count))
        rows = self.ask(text, "/v1/forecast_many?fields=latency_s")[2].splitlines()
        self.assertEqual(rows[0], "latency_s")
        self.assertEqual(len(rows), count + 1)
        self.assertEqual(rows[1:51] * (count // 50), rows[1:])
        body = text[:1000].rsplit("\n", 1)[0].encode()
        old = self.service.raw(b"POST /v1/forecast_many?fields=latency_s HTTP/1.0\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        head, lines = old.decode().split("\r\n\r\n")
        self.assertNotIn("chunked", head)
        self.assertEqual(lines.splitlines(), rows[:len(lines.splitlines())])
        self.assertEqual(len(lines.splitlines()), body.count(b"\n") + 1)

    def test_a_client_that_goes(self):
        """An answer that nobody reads is not made to its end, and the next ones are."""
        body = b"model,gpu,batch\n" + b"".join(b"gpt2,T4,%d\n" % (1 + i % 50) for i in range(200_000))
        for _ in range(5):
            connection = http.client.HTTPConnection("127.0.0.1", self.service.port)
            connection.request("POST", "/v1/forecast_many", body)
            connection.getresponse().read(100)
            connection.close()
        end = time.monotonic() + PATIENCE_S
        # That of the question itself is one.
        while (open_now := gauge(self.service, "tilecast_connections")) > 1 and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(open_now, 1)
        self.assertEqual(self.ask(self.ROWS)[0], 200)

    def test_the_time_of_a_table(self):
        """Rows that are not forecast in time say so; all rows are there."""
        with Service("--request-seconds", "1") as service:
            count = 400
            rows = "".join(json.dumps({"model": "llama-3.1-8b", "gpu": "H100", "prompt": 512 + i, "output": 512, "schedule": "continuous", "rate": 5,
                                       "requests": 20_000}) + "\n" for i in range(count))
            found = [json.loads(line) for line in service.ask("POST", "/v1/forecast_many", rows)[2].splitlines()]
            self.assertEqual(len(found), count)
            self.assertIn("stopped after", found[-1]["error"])

    def test_a_table_as_a_job(self):
        name = begin(self.service, "forecast_many", "".join(json.dumps(row) + "\n" for row in self.ROWS), Accept="text/csv")
        self.assertEqual(wait(self.service, name)["state"], "done")
        _, headers, text = self.service.ask("GET", f"/v1/jobs/{name}/result")
        self.assertEqual(headers["Content-Type"], "text/csv; charset=utf-8")
        self.assertEqual(text, self.ask(self.ROWS, Accept="text/csv")[2])


class Examples(unittest.TestCase):
    def test_the_autoscaler_of_the_guide(self):
        root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        with open(os.path.join(root, "docs", "guide", "call_from_a_scheduler.md")) as file:
            page = file.read()
        with open(os.path.join(root, "examples", "autoscaler.py")) as file:
            code = file.read()
        self.assertIn(page.split("```python\n")[1].split("```")[0], code)
        with Service("--request-seconds", "600") as service:
            run = subprocess.run([sys.executable, os.path.join(root, "examples", "autoscaler.py"), f"http://127.0.0.1:{service.port}"], capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(page.split("autoscaler.py http://127.0.0.1:8080\n")[1].split("```")[0], run.stdout)

    def test_requests_of_the_description(self):
        with Service("--request-seconds", "600") as service:
            document = json.loads(service.ask("GET", "/v1/openapi.json")[2])
            asked = 0
            for path, operations in document["paths"].items():
                for kind, content in operations.get("post", {}).get("requestBody", {}).get("content", {}).items():
                    if "example" in content:
                        status, headers, text = service.ask("POST", path, content["example"], Content_Type=kind)
                        self.assertEqual((status, headers["Content-Type"].split(";")[0]), (200, kind), (path, text[:200]))
                        asked += 1
            self.assertGreater(asked, 9)
            try:
                import jsonschema
            except ImportError:
                self.skipTest("jsonschema is not installed")
            job = {"components": document["components"], "$ref": "#/components/schemas/Job"}
            name = begin(service, "forecast", GPT2)
            wait(service, name)
            jsonschema.Draft202012Validator(job).validate(state(service, name))


if __name__ == "__main__":
    server_test.PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
