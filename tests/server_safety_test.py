#!/usr/bin/env python3
"""The service against clients that ask for too much, too slowly, or for what is not theirs.

server_safety_test.py PROGRAM
"""
import concurrent.futures
import contextlib
import json
import os
import random
import resource
import socket
import sys
import tempfile
import threading
import time
import unittest

import server_test
from server_test import GPT2, Service

# Small inputs that ask for much: of values, of layers, of ranks, of requests, of names.
BOMBS = [
    ("forecast", {"model": {"model_type": "llama", "layer_types": [[]] * 900_000}, "gpu": "H100"}),
    ("forecast", {"model": {"model_type": "llama", "num_hidden_layers": 1_000_000_000}, "gpu": "H100"}),
    ("forecast", {"model": {"model_type": "mixtral", "num_hidden_layers": 10_000, "num_local_experts": 10_000}, "gpu": "H100", "mode": "training"}),
    ("forecast", {"model": "gpt3_67", "cluster": "dgx-h100", "nodes": 32, "mode": "training", "pp": 32, "batch": 30_000, "microbatches": 30_000}),
    ("forecast", {"model": "llama-3.1-8b", "gpu": "H100", "prompt": 64, "output": 2048, "schedule": "continuous", "rate": 1000, "requests": 1_000_000}),
    ("plan", {"model": "gpt3_175", "cluster": "dgx-h100", "nodes": 128, "batch": 3072}),
    ("plan", {"model": "llama-3.1-70b", "gpu": "H100", "num_gpus": 64, "prompt": 4096, "output": 4096, "rate": 100}),
    ("share", {"gpu": "H100", "how": "mps", "job": [{"model": "gpt3_67", "batch": 1 + i, "mode": "training"} for i in range(64)]}),
    ("memory_timeline", {"model": "gpt3_175", "gpu": "H100", "mode": "training", "batch": 4096}),
    ("forecast", "[" * 4_000_000),
    ("forecast", '{"model": "' + "a/" * 3_000_000 + '", "gpu": "H100"}'),
    ("forecast", {"model": "graph g\n" + "input x: fp32[4]\n" * 100_000, "gpu": "H100"}),
    ("shard", {"tables": json.dumps({"embedding_dim": 64, "tables": [{"name": str(i), "rows": 10**9, "pooling": 50} for i in range(20_000)]}), "cluster": "dgx-a100"}),
]


def quick(service: Service, i: int) -> float:
    """Seconds of a request that is answered at once."""
    start = time.monotonic()
    status, _, text = service.ask("POST", "/v1/forecast?fields=latency_s", {**GPT2, "batch": 1 + i % 64})
    assert status == 200, text
    return time.monotonic() - start


def most_open_files() -> int:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = 20_000 if hard == resource.RLIM_INFINITY else hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


class Load(unittest.TestCase):
    def test_ten_thousand_connections(self):
        """They are all served, in any order, while as many are open."""
        count = min(10_000, most_open_files() - 500)
        with Service() as service, contextlib.ExitStack() as stack:
            connections = [stack.enter_context(socket.create_connection(("127.0.0.1", service.port), timeout=120)) for _ in range(count)]
            body = json.dumps(GPT2).encode()
            request = b"POST /v1/forecast?fields=batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            for connection in connections[1::2]:
                connection.sendall(request[:-9])  # half of them leave theirs open
            chosen = random.Random(1).sample(connections[::2], 500)
            for connection in chosen:
                connection.sendall(request)
            for connection in chosen:
                self.assertTrue(connection.recv(4096).startswith(b"HTTP/1.1 200"))
            self.assertEqual(service.post("forecast", GPT2)[0], 200)
            gauge = next(line for line in service.ask("GET", "/metrics")[2].splitlines() if line.startswith("tilecast_connections "))
            self.assertGreaterEqual(int(gauge.split()[1]), count)
        if count < 10_000:
            print(f"{count} connections: the limit on open files allows no more", file=sys.stderr)

    def test_slow_clients(self):
        """Neither who sends a byte at a time nor who reads none holds up the others."""
        with Service() as service, contextlib.ExitStack() as stack:
            end = threading.Event()

            def drip(connection: socket.socket):
                with contextlib.suppress(OSError):
                    for byte in b"POST /v1/plan HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n" + b" " * 900:
                        connection.sendall(bytes([byte]))
                        if end.wait(0.05):
                            return
            # A thousand answers that are not read fill the buffers of a connection.
            greedy = b"GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000
            slow = [stack.enter_context(socket.create_connection(("127.0.0.1", service.port))) for _ in range(60)]
            threads = [threading.Thread(target=drip, args=(connection,)) for connection in slow[:30]]
            for thread in threads:
                thread.start()
            for connection in slow[30:]:
                connection.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    connection.send(greedy)
            try:
                times = sorted(quick(service, i) for i in range(100))
            finally:
                end.set()
                for thread in threads:
                    thread.join()
            self.assertLess(times[50], 2)

    def test_bombs_beside_good_requests(self):
        """Bombs end by their limits, and 50 good requests a second are as quick as without them."""
        with Service("--request-seconds", "5", "--request-megabytes", "256") as service, concurrent.futures.ThreadPoolExecutor(40) as pool:
            def good(count: int) -> list:
                start, answers = time.monotonic(), []
                for i in range(count):
                    time.sleep(max(0.0, start + i / 50 - time.monotonic()))
                    answers.append(pool.submit(quick, service, i))
                return sorted(one.result() for one in answers)
            good(50)
            alone = good(200)
            bombs = [pool.submit(service.ask, "POST", f"/v1/{question}", body) for question, body in BOMBS for _ in range(2)]
            beside = good(400)
            statuses = [one.result()[0] for one in bombs]
            p99 = [times[len(times) * 99 // 100] for times in (alone, beside)]
            print(f"good requests: p99 {1e3 * p99[0]:.1f} ms alone, {1e3 * p99[1]:.1f} ms beside {len(bombs)} bombs", file=sys.stderr)
            # Of a machine with other work: as much longer as it is slower.
            self.assertLess(p99[1], max(0.1, 20 * p99[0]))
            self.assertTrue(set(statuses) <= {200, 400, 404, 422, 503}, statuses)
            self.assertIn(422, statuses)

    def test_memory_is_counted_for_each_request(self):
        """One request at its limit is not a reason to refuse another."""
        with Service("--request-megabytes", "64", "--request-seconds", "600") as service, concurrent.futures.ThreadPoolExecutor(8) as pool:
            heavy = {"model": {"model_type": "llama", "layer_types": ["x" * 20] * 300_000}, "gpu": "H100"}
            light = {"model": {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 100, "n_positions": 64}, "gpu": "H100", "seq": 16}
            heavy_ones = [pool.submit(service.post, "forecast", heavy) for _ in range(8)]
            light_ones = [service.post("forecast", {**light, "batch": 1 + i})[0] for i in range(20)]
            self.assertEqual(set(light_ones), {200})
            for one in heavy_ones:
                status, problem = one.result()
                self.assertIn(status, (400, 422), problem)


class Http(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = Service()

    @classmethod
    def tearDownClass(cls):
        cls.service.__exit__()

    def test_no_request_is_smuggled(self):
        """Two lengths that disagree, or a length beside chunks, are refused: what follows is never taken for another request."""
        hidden = "GET /v1/gpus/H100 HTTP/1.1\r\nHost: localhost\r\n\r\n"
        head = "POST /v1/forecast HTTP/1.1\r\nHost: localhost\r\n"
        for lines in ("Content-Length: 5\r\nContent-Length: 6", "Content-Length: 5, 6", "Content-Length: +5", "Content-Length: 5\r\nTransfer-Encoding: chunked",
                      "Transfer-Encoding: chunked\r\nContent-Length: 5", "Transfer-Encoding: chunked, identity", "Transfer-Encoding: xchunked\r\nContent-Length: 5",
                      "Content-Length: 0x5", "Content-Length: 5\r\n\tfolded", "Content-Length : 5"):
            answer = self.service.raw(f"{head}{lines}\r\n\r\n0\r\n\r\n{hidden}".encode(), wait=3)
            self.assertNotIn(b"nvidia-h100", answer, lines)
            self.assertLessEqual(answer.count(b"HTTP/1.1 "), 1, (lines, answer[:300]))

    def test_chunked_nonsense(self):
        head = b"POST /v1/forecast HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        for chunks in (b"g\r\n", b"-1\r\n", b"ffffffffffffffffffff\r\n", b"5\r\nab\r\n\r\n", b"2\r\nabc\r\n0\r\n\r\n", b"1;" + b"x" * 100_000, b"\r\n\r\n\r\n", b"0\r\n" + b"a: b\r\n" * 20_000,
                       b"8000000000000000\r\n", b"fffffffffffffffe\r\nx"):
            answer = self.service.raw(head + chunks, wait=3)
            self.assertTrue(not answer or answer.startswith(b"HTTP/1.1 4"), (chunks[:40], answer[:100]))
        # A body of chunks of a byte each is limited as others are.
        answer = self.service.raw(head + b"1\r\n \r\n" * (9 << 20), wait=30)
        self.assertTrue(answer.startswith(b"HTTP/1.1 413"), answer[:100])
        self.assertEqual(self.service.post("forecast", GPT2)[0], 200)

    def test_random_bytes(self):
        generator = random.Random(5)
        body = json.dumps(GPT2).encode()
        good = b"POST /v1/forecast HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body
        for _ in range(200):
            bad = bytearray(good)
            for _ in range(generator.randrange(1, 5)):
                bad[generator.randrange(len(bad))] = generator.randrange(256)
            answer = self.service.raw(bytes(bad), wait=0.05)
            self.assertTrue(not answer or answer.startswith(b"HTTP/1."), answer[:60])
            self.assertNotIn(b" 500 ", answer[:20], bytes(bad))
        self.assertEqual(self.service.post("forecast", GPT2)[0], 200)


class Files(unittest.TestCase):
    """--allow-dir DIR."""

    def test_one_folder_is_opened(self):
        with tempfile.TemporaryDirectory() as root:
            root = os.path.realpath(root)
            inside, outside = os.path.join(root, "in"), os.path.join(root, "in_not")
            config = {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 100, "n_positions": 64}
            for folder in (inside, outside):
                os.makedirs(os.path.join(folder, "m"))
                with open(os.path.join(folder, "m", "config.json"), "w") as file:
                    json.dump(config, file)
            os.symlink(os.path.join(outside, "m"), os.path.join(inside, "away"))
            os.symlink(os.path.join(outside, "m", "config.json"), os.path.join(inside, "m", "away.json"))
            os.symlink(os.path.join(inside, "m"), os.path.join(inside, "here"))
            os.symlink(inside, os.path.join(root, "alias"))
            os.mkfifo(os.path.join(inside, "pipe"))
            with Service("--allow-dir", os.path.join(root, "alias")) as service:
                def status(path: str) -> int:
                    found, answer = service.post("forecast", {"model": path, "gpu": "H100", "seq": 16})
                    if found != 200:
                        self.assertNotIn("n_embd", json.dumps(answer))
                    return found
                device = json.loads(service.ask("GET", "/v1/gpus/H100")[2])
                with open(os.path.join(inside, "gpu.json"), "w") as file:
                    json.dump({**device, "id": "nvidia-mine"}, file)
                for path in ("in/m", "in/m/config.json", "alias/m", "in/here", "in/../in/m", "in//m/./config.json"):
                    self.assertEqual(status(os.path.join(root, path)), 200, path)
                for path in ("in_not/m", "in_not/m/config.json", "in/away", "in/m/away.json", "in/../in_not/m", "in/m/../../in_not/m/config.json", "in/nothing",
                             "in/nothing/../m/x", "in_not/gone"):
                    self.assertEqual(status(os.path.join(root, path)), 404, path)
                self.assertEqual(status("/etc/passwd"), 404)
                self.assertEqual(status("/proc/self/environ"), 404)
                self.assertIn(status(os.path.join(inside, "pipe")), (400, 404, 500))
                self.assertEqual(service.post("forecast", {"model": "gpt2", "gpu": os.path.join(inside, "gpu.json")})[1].get("gpu"), "nvidia-mine")
                lines = json.dumps({"model": os.path.join(inside, "m"), "gpu": "H100", "seq": 16}) + "\n" + json.dumps({"model": os.path.join(outside, "m"), "gpu": "H100"})
                rows = [json.loads(row) for row in service.ask("POST", "/v1/forecast_many", lines)[2].splitlines()]
                self.assertEqual([row["error"] is None for row in rows], [True, False])
                self.assertEqual(service.post("forecast", GPT2)[0], 200)
                # Whether there is such a file elsewhere makes no difference.
                there, gone = (service.post("forecast", {"model": os.path.join(outside, name), "gpu": "H100"})[1]["detail"].replace("in_not/" + name, "X") for name in ("m", "gone"))
                self.assertEqual(there, gone)
            with Service() as service:
                self.assertEqual(service.post("forecast", {"model": os.path.join(inside, "m"), "gpu": "H100"})[0], 404)


if __name__ == "__main__":
    server_test.PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
