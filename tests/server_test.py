#!/usr/bin/env python3
"""The service: answers equal those of the command line, refuses what it should, and outlives bad clients.

server_test.py PROGRAM
"""
import ast
import base64
import concurrent.futures
import http.client
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ""
GPT2 = {"model": "gpt2", "gpu": "H100", "batch": 4}


class Service:
    def __init__(self, *words: str, **variables: str):
        # A folder of its own: nothing in it may be read.
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen([os.path.abspath(PROGRAM), "serve", "--port", "0", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, cwd=self.folder.name, env={**os.environ, **variables})
        line = self.process.stdout.readline()
        assert "listens on http://" in line, (line, self.process.stderr.read() if not line else "")
        self.port = int(line.split("/v1/")[0].rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)
        self.process.stdout.close()
        self.process.stderr.close()
        self.folder.cleanup()

    def ask(self, method: str, target: str, body=None, **headers: str):
        """Status, headers and text of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        try:
            text = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
            connection.request(method, target, text, {key.replace("_", "-"): value for key, value in headers.items()})
            response = connection.getresponse()
            return response.status, response.headers, response.read().decode()
        finally:
            connection.close()

    def post(self, question: str, body, **headers: str):
        status, _, text = self.ask("POST", f"/v1/{question}", body, **headers)
        return status, json.loads(text)

    def raw(self, content: bytes, wait: float = 10) -> bytes:
        """What comes back for these bytes until the connection ends or nothing comes for a while."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as connection:
            connection.sendall(content)
            received = b""
            try:
                while part := connection.recv(65536):
                    received += part
            except (TimeoutError, ConnectionResetError):
                pass
            return received


def command_line(*words: str):
    return json.loads(subprocess.run([PROGRAM, *words, "--format", "json"], capture_output=True, text=True, check=True).stdout)


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = Service()

    @classmethod
    def tearDownClass(cls):
        cls.service.__exit__()

    def test_answers_are_those_of_the_command_line(self):
        for question, body, words in (
                ("forecast", GPT2, ["forecast", "gpt2", "--gpu", "H100", "--batch", "4"]),
                ("forecast", {"model": "llama-3-8b", "gpu": "H100", "prompt": 128, "output": 16, "cuda_graphs": "off"},
                 ["forecast", "llama-3-8b", "--gpu", "H100", "--prompt", "128", "--output", "16", "--cuda-graphs", "off"]),
                ("compare_gpus", {"model": "gpt2", "gpus": ["H100", "T4"]}, ["forecast", "gpt2", "--gpus", "H100,T4"]),
                ("kernel", {"op": "linear", "gpu": "A100", "m": 128, "n": 256, "k": 512}, ["kernel", "linear", "--gpu", "A100", "-m", "128", "-n", "256", "-k", "512"]),
                ("collective", {"kind": "all_reduce", "cluster": "dgx-h100", "ranks": 8, "bytes": 1 << 20},
                 ["collective", "all_reduce", "--cluster", "dgx-h100", "--ranks", "8", "--bytes", str(1 << 20)]),
                ("compare", {"a": "H100", "b": "T4", "model": "gpt2"}, ["compare", "H100", "T4", "--model", "gpt2"]),
                ("share", {"gpu": "V100", "how": "mps", "job": [{"model": "gpt2", "batch": 2}, "bert mode=training"]},
                 ["share", "--gpu", "V100", "--how", "mps", "--job", "gpt2 batch=2", "--job", "bert mode=training"]),
                ("shard", {"tables": "dlrm_mlperf", "cluster": "dgx-a100"}, ["shard", "dlrm_mlperf", "--cluster", "dgx-a100"])):
            with self.subTest(question=question):
                self.assertEqual(self.service.post(question, body), (200, command_line(*words)))

    def test_an_answer_asks_its_question_again(self):
        """A request is the JSON that answers echo under options."""
        first = self.service.post("forecast", GPT2)[1]
        again = self.service.post("forecast", {**first["options"], "model": "gpt2", "gpu": first["gpu"]})[1]
        self.assertEqual(again["latency_s"], first["latency_s"])

    def test_content_in_place_of_names(self):
        config = {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 100, "n_positions": 64}
        status, answer = self.service.post("forecast", {"model": config, "gpu": "H100", "seq": 16})
        self.assertEqual(status, 200, answer)
        self.assertLess(answer["parameters"], 1_000_000)
        device = json.loads(self.service.ask("GET", "/v1/gpus/H100")[2])
        device["id"] = "nvidia-mine"
        status, answer = self.service.post("forecast", {**GPT2, "gpu": device})
        self.assertEqual((status, answer["gpu"]), (200, "nvidia-mine"))
        status, answer = self.service.post("compare_gpus", {"model": "gpt2", "gpus": [device, "T4"]})
        self.assertEqual((status, [gpu["gpu"] for gpu in answer["gpus"]]), (200, ["nvidia-mine", "nvidia-t4"]), answer)
        status, answer = self.service.post("compare", {"a": {"model": config, "gpu": device, "seq": 16}, "b": "T4"})
        self.assertEqual(status, 400, answer)  # b states no model
        status, answer = self.service.post("compare", {"a": device, "b": {"gpu": "T4", "batch": 2}, "model": config, "seq": 16})
        self.assertEqual(status, 200, answer)
        status, other = self.service.post("compare", {"a": config, "b": self.service.post("forecast", {"model": config, "gpu": "T4", "seq": 16})[1], "gpu": device, "seq": 16})
        self.assertEqual(status, 200, other)
        status, answer = self.service.post("plan", {"model": "gpt2", "gpus": [device, "T4"], "num_gpus": 1, "batch": 8})
        self.assertEqual(status, 200, answer)
        status, answer = self.service.post("share", {"gpu": device, "job": [{"model": config, "seq": 16, "name": "mine"}]})
        self.assertEqual((status, answer["jobs"][0]["name"]), (200, "mine"), answer)

    def test_files_in_base64(self):
        """An ONNX file is no text: its bytes stand in base64 in the model's place, wherever a model may."""
        content = (ROOT / "tests/fuzz/onnx" / "images.onnx").read_bytes()
        model = {"base64": base64.b64encode(content).decode(), "name": "images.onnx"}
        status, answer = self.service.post("forecast", {"model": model, "gpu": "H100", "batch": 4})
        self.assertEqual((status, answer.get("model")), (200, "images"), answer)
        status, other = self.service.post("share", {"gpu": "H100", "job": [{"model": model, "batch": 4}]})
        self.assertEqual(status, 200, other)
        _, _, calls = self.service.ask("POST", "/v1/forecast?format=calls", {"model": model, "gpu": "H100"})
        self.assertIn("tilecast forecast images.onnx", json.loads(calls)["command_line"])
        for wrong, said in [({"base64": "x"}, "is no base64"), ({"base64": 1}, "base64"), ({"base64": "", "path": "x"}, "path"),
                            ({"base64": base64.b64encode(b'{"base64": ""}').decode()}, "holds base64 again"),
                            ({"base64": base64.b64encode(content[:40]).decode(), "name": "\x1b.onnx"}, "")]:
            status, answer = self.service.post("forecast", {"model": wrong, "gpu": "H100"})
            self.assertIn(status, (400, 422), answer)
            self.assertIn(said, answer["detail"])
            self.assertNotIn("\x1b", answer["detail"])

    def test_fields(self):
        status, _, text = self.service.ask("POST", "/v1/forecast?fields=latency_s,warnings", GPT2)
        self.assertEqual((status, sorted(json.loads(text))), (200, ["latency_s", "warnings"]))
        status, _, text = self.service.ask("POST", "/v1/forecast?fields=latency", GPT2)
        self.assertEqual(status, 400)
        self.assertIn("did you mean 'latency_s'", json.loads(text)["detail"])

    def test_catalogues(self):
        for name in ("gpus", "clusters", "models", "ops"):
            self.assertEqual(json.loads(self.service.ask("GET", f"/v1/{name}")[2]), command_line(name))
        self.assertIn("source", self.service.ask("GET", "/v1/gpus/H100")[2])
        self.assertEqual(self.service.ask("GET", "/v1/gpus/H1000")[0], 404)
        for target in ("/v1/gpus?name=%ff", "/v1/gpus/%ff", "/v1/ops?name=%fe%00"):
            self.assertLess(self.service.ask("GET", target)[0], 500, target)  # no text: no name of anything
        options = json.loads(self.service.ask("GET", "/v1/options")[2])
        self.assertIn("batch", [option["name"] for option in options["forecast"]])
        self.assertNotIn("train", options)

    def test_problems(self):
        for body, status, detail in (({"model": "gpt2", "gpu": "H100", "batc": 4}, 400, "did you mean 'batch'"),
                                     ({"model": "gpt5", "gpu": "H100"}, 404, "did you mean"),
                                     ({"model": "gpt2", "gpu": "H100", "dtype": "int4_wo", "mode": "training"}, 422, ""),
                                     ({"model": "gpt2", "gpu": "H100", "batch": [1, 2]}, 400, "expected"),
                                     ({"model": "gpt2", "gpu": "H100", "max_memory": "99GB"}, 400, "set by the service"),
                                     ({"model": "gpt2", "gpu": "H100", "calibration": "mine.json"}, 400, "set by the service"),
                                     ("[1]", 400, "object"), ("{", 400, "JSON"), ("", 400, "")):
            with self.subTest(body=body):
                found, problem = self.service.post("forecast", body)
                self.assertEqual((found, problem["status"]), (status, status), problem)
                self.assertIn(detail, problem["detail"])
        self.assertEqual(self.service.ask("GET", "/v1/forecast")[0], 405)
        for target in ("/", "/web/page.js", "/v1", "/v1/", "/v1/train", "/v1/evaluate", "/v1/sweep", "/v1/calibrate", "/v1/doctor", "/v2/forecast"):
            self.assertEqual(self.service.ask("POST", target, "{}")[0], 404, target)

    def test_openapi(self):
        document = json.loads(self.service.ask("GET", "/v1/openapi.json")[2])
        self.assertEqual(document["openapi"], "3.1.0")
        self.assertIn("/v1/forecast", document["paths"])
        self.assertNotIn("/v1/train", document["paths"])
        text = json.dumps(document)
        for name in set(part.split('"')[0] for part in text.split("#/components/schemas/")[1:]):
            self.assertIn(name, document["components"]["schemas"])
        try:
            import jsonschema
        except ImportError:
            self.skipTest("jsonschema is not installed")
        schema = {"components": document["components"], **document["paths"]["/v1/forecast"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]}
        jsonschema.Draft202012Validator(schema).validate(self.service.post("forecast", GPT2)[1])
        asked = {"components": document["components"], **document["paths"]["/v1/forecast"]["post"]["requestBody"]["content"]["application/json"]["schema"]}
        jsonschema.Draft202012Validator(asked).validate(GPT2)

    def test_page(self):
        status, headers, text = self.service.ask("GET", "/")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        for rule in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "base-uri 'none'", "frame-ancestors 'none'", "form-action 'none'"):
            self.assertIn(rule, headers["Content-Security-Policy"])
        self.assertNotIn("unsafe", headers["Content-Security-Policy"])
        self.assertEqual((headers["X-Content-Type-Options"], headers["Referrer-Policy"], headers["Cache-Control"]), ("nosniff", "no-referrer", "no-cache"))
        # Whatever the page names is there, and a browser that has it gets no body.
        names = [part.split('"')[0] for part in text.split('"web/')[1:]]
        self.assertIn("page.js", names)
        for name in names:
            status, headers, content = self.service.ask("GET", f"/web/{name}")
            kind = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}[name.split(".")[-1]]
            self.assertEqual((status, headers["Content-Type"]), (200, kind), name)
            self.assertIn("script-src 'self'", headers["Content-Security-Policy"])
            for module in [part.split("'")[0] for part in content.split(" from './")[1:]]:
                self.assertIn(module, names)  # index.html has them loaded at once, not one after the other
            for tag in (headers["ETag"], f"W/{headers['ETag']}", f'"x", {headers["ETag"]}'):
                status, again, body = self.service.ask("GET", f"/web/{name}", If_None_Match=tag)
                self.assertEqual((status, again["ETag"], body), (304, headers["ETag"], ""))
            self.assertEqual(self.service.ask("GET", f"/web/{name}", If_None_Match='"x"')[0], 200)
        self.assertEqual(self.service.ask("GET", "/?x=y")[0], 200)
        self.assertEqual(self.service.ask("HEAD", "/")[2], "")
        for target in ("/web", "/web/", "/web/index.html", "/web/nothing.js", "/web/../web/page.js", "/web/%2e%2e/web/page.js", "/web//page.js", "/web/page.js/",
                       "/web/page.js%00", "/index.html", "/page.js", "//", "/web/style.css.map"):
            self.assertEqual(self.service.ask("GET", target)[0], 404, target)
        self.assertEqual(self.service.ask("GET", "/", Host="evil.example")[0], 403)

    def test_options_of_a_question(self):
        groups = json.loads(self.service.ask("GET", "/v1/options/forecast")[2])["groups"]
        tokens = {option["name"]: option for option in next(group for group in groups if "Text generation" in group["title"])["options"]}
        self.assertEqual((tokens["batch"]["type"], tokens["batch"]["min"], tokens["batch"]["default"], tokens["batch"]["essential"]), ("integer", 1, "1", True))
        self.assertIn("one replica", tokens["batch"]["help"])
        self.assertFalse(tokens["router"]["essential"])
        self.assertIn("round-robin", tokens["router"]["choices"])
        listed = {option["name"] for group in groups for option in group["options"]}
        everything = json.loads(self.service.ask("GET", "/v1/options")[2])
        self.assertEqual(listed, {option["name"] for option in everything["forecast"]})
        for name in ("train", "nothing", "", "forecast/x"):
            self.assertEqual(self.service.ask("GET", f"/v1/options/{name}")[0], 404, name)

    def test_calls_ask_the_same(self):
        for question, body in (("forecast", {**GPT2, "mode": "training", "dim": ["a=1"], "attention": "eager"}),
                               ("compare_gpus", {"model": "gpt2", "gpus": ["H100", "T4"], "skip_unsupported": True}),
                               ("collective", {"kind": "all_reduce", "cluster": "dgx-h100", "ranks": 8, "bytes": 1 << 20}),
                               ("compare", {"a": "H100", "b": "T4", "model": "gpt2"}),
                               ("kernel", {"op": "linear", "gpu": "A100", "m": 128, "n": 256, "k": 512}),
                               ("share", {"gpu": "V100", "how": "mps", "job": ["gpt2 batch=2", "bert mode=training"]})):
            with self.subTest(question=question):
                calls = json.loads(self.service.ask("POST", f"/v1/{question}?format=calls", body)[2])
                words = shlex.split(calls["command_line"])
                self.assertEqual(words[0], "tilecast")
                if question != "forecast":  # a model of a name has no dimensions
                    self.assertEqual(command_line(*words[1:]), self.service.post(question, body)[1])
                self.assertTrue(calls["python"].startswith(f"tilecast.{question}("), calls)
        calls = json.loads(self.service.ask("POST", "/v1/forecast?format=calls", {**GPT2, "skip_unsupported": False, "tokens": None})[2])
        self.assertEqual(calls, {"command_line": "tilecast forecast gpt2 --gpu H100 --batch 4", "python": 'tilecast.forecast("gpt2", "H100", batch=4)'})

    def test_calls_are_one_word_for_each_value(self):
        """Whatever a name has, a shell and Python read it as a text, and as no flag."""
        for name in ("$(rm x)", "a'b\"c", "--output-file=x", "-x", "a b;c", "`x`", "\n\u0007", "x\\", "\u202e"):
            calls = json.loads(self.service.ask("POST", "/v1/forecast?format=calls", {"model": "gpt2", "gpu": name})[2])
            words = shlex.split(calls["command_line"])
            self.assertEqual(len(words), 5, words)
            self.assertFalse(words[4].startswith("-"), words)
            call = ast.parse(calls["python"], mode="eval").body
            self.assertEqual([argument.value for argument in call.args][0], "gpt2")
        content = {"model": {"model_type": "gpt2"}, "gpu": "H100"}
        self.assertEqual(json.loads(self.service.ask("POST", "/v1/forecast?format=calls", content)[2])["command_line"], "tilecast forecast model.json --gpu H100")
        self.assertEqual(self.service.ask("POST", "/v1/forecast?format=calls", {"modle": "x"})[0], 400)

    def test_compare_content(self):
        """Both sides may be the options of requests, with the content of a model."""
        config = {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 100, "n_positions": 64}
        status, answer = self.service.post("compare", {"a": {**GPT2, "gpu": "T4"}, "b": {"model": config, "gpu": "H100", "seq": 16}})
        self.assertEqual((status, answer["a"]["name"], answer["b"]["name"]), (200, "a", "b"), answer)
        self.assertEqual(answer["a"]["latency_s"], self.service.post("forecast", {**GPT2, "gpu": "T4"})[1]["latency_s"])
        status, answer = self.service.post("compare", {"a": {"nothing": 1}, "b": "gpt2", "gpu": "H100"})
        self.assertEqual(status, 400, answer)

    def test_metrics(self):
        def requests() -> int:
            lines = self.service.ask("GET", "/metrics")[2].splitlines()
            return int(next(line.split()[1] for line in lines if line.startswith("tilecast_requests_total ")))
        before = requests()
        self.service.post("forecast", GPT2)
        self.assertEqual(requests(), before + 2)

        def metric(name: str) -> float:
            return float(next(line for line in self.service.ask("GET", "/metrics")[2].splitlines() if line.startswith(name + " ")).split()[1])
        hits, misses = (metric(f"tilecast_pass_cache_{name}_total") for name in ("hits", "misses"))
        for gpu in ("T4", "L4"):
            self.service.post("forecast", {**GPT2, "batch": 37, "gpu": gpu})
        self.assertEqual(metric("tilecast_pass_cache_misses_total"), misses + 1)
        self.assertGreater(metric("tilecast_pass_cache_hits_total"), hits)
        self.assertEqual(metric("tilecast_in_progress"), 1)  # this one
        self.assertEqual(self.service.ask("GET", "/healthz")[2], "ok\n")


class Safety(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = Service()

    @classmethod
    def tearDownClass(cls):
        cls.service.__exit__()

    def test_paths_are_no_names(self):
        """All spellings of paths get one answer, whether there is such a file or not."""
        folder = self.service.folder.name
        config = os.path.join(folder, "config.json")
        with open(config, "w") as file:
            json.dump({"model_type": "gpt2"}, file)
        spellings = [config, folder, "config.json", "./config.json", "../" + os.path.basename(folder) + "/config.json", "/etc/passwd", "/proc/self/environ",
                     "/dev/zero", "file://" + config, "~/config.json", "config.json\0", "//etc//passwd", "/etc/../etc/passwd", ".", "..", "/", "config"]
        spellings += [prefix + text for prefix in ("./", ".//", "/./", "x/../") for text in spellings]
        for text in spellings:
            for body in ({"model": text, "gpu": "H100"}, {"model": "gpt2", "gpu": text}, {"model": "gpt2", "cluster": text}):
                status, problem = self.service.post("forecast", body)
                self.assertIn(status, (400, 404), (body, problem))
                self.assertNotIn("model_type", json.dumps(problem))
            self.assertEqual(self.service.post("shard", {"tables": text, "cluster": "dgx-a100"})[0], 404)
            self.assertIn(self.service.post("share", {"gpu": "H100", "job": [{"model": text}]})[0], (400, 404))
            self.assertIn(self.service.post("share", {"gpu": "H100", "jobs": [text]})[0], (400, 404))
            self.assertIn(self.service.post("forecast", {"model": "gpt2", "gpu": "H100", "trace": text, "prompt": 8})[0], (400, 404))
        there = self.service.post("forecast", {"model": config, "gpu": "H100"})[1]["detail"].replace(config, "X")
        missing = self.service.post("forecast", {"model": config + "2", "gpu": "H100"})[1]["detail"].replace(config + "2", "X")
        self.assertEqual(there, missing)

    def test_hosts_and_origins(self):
        port = self.service.port
        for host, status in ((f"localhost:{port}", 200), (f"LOCALHOST:{port}", 200), (f"evil.example:{port}", 403), ("evil.example", 403), ("", 403), (f"[::1]:{port}", 200)):
            self.assertEqual(self.service.post("forecast", GPT2, Host=host)[0], status, host)
        for origin, status in (("http://evil.example", 403), (f"http://localhost:{port}", 200), ("null", 403)):
            self.assertEqual(self.service.post("forecast", GPT2, Host=f"localhost:{port}", Origin=origin)[0], status, origin)

    def test_token(self):
        with Service("--host", "0.0.0.0", "--allow-host", "Cast.Example", TILECAST_TOKEN="s3cret") as service:
            self.assertEqual(service.post("forecast", GPT2)[0], 401)
            self.assertEqual((service.ask("GET", "/")[0], service.ask("GET", "/web/page.js")[0], service.ask("GET", "/v1/models")[0]), (200, 200, 401))
            self.assertEqual(service.post("forecast", GPT2, Authorization="Bearer s3cre")[0], 401)
            self.assertEqual(service.post("forecast", GPT2, Authorization="Bearer s3cret")[0], 200)
            self.assertEqual(service.post("forecast", GPT2, Authorization="Bearer s3cret", Host="cast.example")[0], 200)
            self.assertEqual(service.ask("GET", "/healthz")[0], 200)
        refused = subprocess.run([PROGRAM, "serve", "--host", "0.0.0.0", "--port", "0"], capture_output=True, text=True,
                                 env={key: value for key, value in os.environ.items() if key != "TILECAST_TOKEN"})
        self.assertEqual(refused.returncode, 2)
        self.assertIn("TILECAST_TOKEN", refused.stderr)

    def test_broken_http(self):
        body = json.dumps(GPT2)
        head = f"POST /v1/forecast HTTP/1.1\r\nHost: localhost:{self.service.port}\r\n"
        for text in ("\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\0" * 1000, head + "Content-Length: -1\r\n\r\n",
                     head + "Content-Length: 99999999999999999999\r\n\r\n", head + f"Content-Length: {len(body)}\r\nContent-Length: 3\r\n\r\n" + body,
                     head + f"Content-Length: {len(body)}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                     head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", head + "X: " + "y" * 100_000 + "\r\n\r\n",
                     head + "Content-Length: 1000000000\r\n\r\n"):
            answer = self.service.raw(text.encode())
            self.assertTrue(answer.startswith(b"HTTP/1.1 4"), (text[:80], answer[:80]))
        self.assertEqual(self.service.post("forecast", GPT2)[0], 200)

    def test_methods_and_expectations(self):
        head = self.service.raw(b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        self.assertEqual((head.count(b"HTTP/1.1 200"), head.count(b"ok\n")), (2, 1), head)
        body = json.dumps(GPT2).encode()
        answer = self.service.raw(b"POST /v1/forecast?fields=batch HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nExpect: 100-continue\r\n" +
                                  f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        self.assertTrue(answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200"), answer[:100])
        # The answer arrives though nobody reads the body.
        self.assertEqual(self.service.ask("POST", "/v1/forecast", "x" * (9 << 20))[0], 413)

    def test_what_is_refused_waits_for_no_body(self):
        """Hosts and tokens are checked before the body, and before a worker is free."""
        start = time.monotonic()
        answer = self.service.raw(b"POST /v1/plan HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 8000000\r\n\r\n")
        self.assertTrue(answer.startswith(b"HTTP/1.1 403"), answer[:60])
        self.assertLess(time.monotonic() - start, 8)

    def test_many_jobs(self):
        jobs = [{"model": "gpt2", "batch": 1 + i % 8, "name": str(i)} for i in range(65)]
        self.assertEqual(self.service.post("share", {"gpu": "H100", "how": "mps", "job": jobs})[0], 400)
        self.assertEqual(self.service.post("share", {"gpu": "H100", "how": "mps", "job": jobs[:64]})[0], 200)

    def test_pipelined_requests_are_answered_in_order(self):
        def request(batch: int, close: bool) -> str:
            body = json.dumps({**GPT2, "batch": batch})
            return (f"POST /v1/forecast?fields=batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n" +
                    ("Connection: close\r\n" if close else "") + "\r\n" + body)
        answer = self.service.raw("".join(request(i, i == 20) for i in range(1, 21)).encode()).decode()
        self.assertEqual([int(part.split("\n}")[0]) for part in answer.split('"batch": ')[1:]], list(range(1, 21)))

    def test_chunked_bodies(self):
        body = json.dumps(GPT2)
        chunks = "".join(f"{len(body[i:i + 7]):x}\r\n{body[i:i + 7]}\r\n" for i in range(0, len(body), 7)) + "0\r\n\r\n"
        answer = self.service.raw(("POST /v1/forecast?fields=batch HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks).encode())
        self.assertTrue(answer.startswith(b"HTTP/1.1 200"), answer[:100])

    def test_long_answers_do_not_hold_up_short_ones(self):
        heavy = {"model": "gpt3_175", "cluster": "dgx-h100", "nodes": 16, "batch": 1536}
        with Service("--request-seconds", "4") as service, concurrent.futures.ThreadPoolExecutor(4) as pool:
            long_ones = [pool.submit(service.post, "plan", {**heavy, "seq": 1024 + i}) for i in range(4)]
            times = []
            while not all(one.done() for one in long_ones):
                start = time.monotonic()
                self.assertEqual(service.ask("POST", "/v1/forecast?fields=latency_s", {**GPT2, "batch": len(times) % 64 + 1})[0], 200)
                times.append(time.monotonic() - start)
            self.assertGreater(len(times), 5)
            self.assertLess(sorted(times)[len(times) // 2], 0.5)
            for one in long_ones:
                self.assertIn(one.result()[0], (200, 422))

    def test_too_much_work_is_refused(self):
        with Service("--waiting", "1", "--request-seconds", "2") as service, concurrent.futures.ThreadPoolExecutor(6) as pool:
            heavy = {"model": "gpt3_175", "cluster": "dgx-h100", "nodes": 16, "batch": 1536, "seq": 2048}
            answers = [one.result() for one in [pool.submit(service.ask, "POST", "/v1/plan", {**heavy, "seq": 1024 + i}) for i in range(6)]]
            self.assertTrue(any(status == 503 and headers["Retry-After"] for status, headers, _ in answers))
            self.assertIn(422, [status for status, _, _ in answers])  # two seconds are not enough
            self.assertEqual(service.post("forecast", GPT2)[0], 200)

    def test_idle_connections(self):
        connections = [socket.create_connection(("127.0.0.1", self.service.port)) for _ in range(300)]
        for connection in connections:
            connection.sendall(b"POST /v1/forecast HTTP/1.1\r\nHost: loc")
        self.assertEqual(self.service.post("forecast", GPT2)[0], 200)
        for connection in connections:
            connection.close()

    def test_the_end(self):
        """SIGTERM finishes what is in progress, and ends idle connections."""
        # Budgets that a build with sanitizers keeps too: it is slow, and what it frees stays with the process.
        with Service("--request-seconds", "600", "--request-megabytes", "8192") as service, concurrent.futures.ThreadPoolExecutor(1) as pool:
            idle = socket.create_connection(("127.0.0.1", service.port))
            one = pool.submit(service.post, "plan", {"model": "gpt3_67", "cluster": "dgx-h100", "nodes": 2, "batch": 128})
            time.sleep(0.3)
            service.process.send_signal(signal.SIGTERM)
            status, answer = one.result()
            self.assertEqual(status, 200, answer)
            self.assertEqual(service.process.wait(timeout=30), 0)
            idle.close()

    def test_a_second_signal_ends_it(self):
        with Service() as service, concurrent.futures.ThreadPoolExecutor(1) as pool:
            one = pool.submit(service.ask, "POST", "/v1/plan", {"model": "gpt3_175", "cluster": "dgx-h100", "nodes": 32, "batch": 1536})
            time.sleep(0.5)
            for _ in range(2):
                service.process.send_signal(signal.SIGTERM)
                time.sleep(0.3)
            self.assertIn(service.process.wait(timeout=30), (0, -signal.SIGTERM))
            try:
                one.result()
            except (OSError, http.client.HTTPException):
                pass


class Tools(unittest.TestCase):
    """tilecast mcp: a message a line."""

    def talk(self, *messages) -> list:
        lines = "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in messages)
        run = subprocess.run([PROGRAM, "mcp"], input=lines, capture_output=True, text=True, timeout=60)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return [json.loads(line) for line in run.stdout.splitlines()]

    @staticmethod
    def call(number: int, name: str, **arguments) -> dict:
        return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}

    def test_a_talk(self):
        first, tools, table, fields, wrong = self.talk(
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}}},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": "two", "method": "tools/list"},
            self.call(3, "forecast", **GPT2), self.call(4, "forecast", **GPT2, fields=["latency_s"]), self.call(5, "forecast", model="gpt2", gpu="H1000"))
        self.assertIn("tools", first["result"]["capabilities"])
        self.assertEqual(tools["id"], "two")
        names = [tool["name"] for tool in tools["result"]["tools"]]
        self.assertIn("share", names)
        self.assertNotIn("train", names)
        forecast = next(tool for tool in tools["result"]["tools"] if tool["name"] == "forecast")
        self.assertLessEqual({"model", "gpu", "cluster", "batch", "prompt"}, set(forecast["inputSchema"]["properties"]))
        self.assertLess(len(json.dumps(tools)), 25_000)  # each talk reads it
        self.assertIn("gpt2 on NVIDIA H100", table["result"]["content"][0]["text"])
        self.assertEqual(json.loads(fields["result"]["content"][0]["text"]), {"latency_s": command_line("forecast", "gpt2", "--gpu", "H100", "--batch", "4")["latency_s"]})
        self.assertTrue(wrong["result"]["isError"])
        self.assertIn("did you mean", wrong["result"]["content"][0]["text"])

    def test_all_options_of_a_tool(self):
        some, all_options, none, local = self.talk(self.call(1, "options", tool="forecast", word="Speculative"), self.call(2, "options", tool="plan"),
                                                   self.call(3, "options", tool="forecast", word="qqq"), self.call(4, "options", tool="train"))
        self.assertIn("speculative", some["result"]["content"][0]["text"])
        self.assertNotIn("clocks", some["result"]["content"][0]["text"])
        self.assertIn("memory_reserve (number, default 0.1)", all_options["result"]["content"][0]["text"])
        self.assertIn("no option has that word", none["result"]["content"][0]["text"])
        self.assertTrue(local["result"]["isError"])

    def test_what_is_no_message(self):
        answers = self.talk("{", "[]", "1", {"id": 1}, {"id": 2, "method": "x"}, self.call(3, "train"), {"id": 4, "method": "tools/call", "params": []},
                            {"id": 5, "method": "ping"})
        self.assertEqual([one.get("error", {}).get("code") for one in answers], [-32700, -32600, -32600, -32600, -32601, -32602, -32602, None])


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
