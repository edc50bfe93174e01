#!/usr/bin/env python3
"""An autoscaler of a simulated chat service: how many servers, now and in a quarter of an hour, by asking Tilecast's service.

autoscaler.py [URL, default http://127.0.0.1:8080]

It looks 15 minutes ahead, as a server takes that long to start, asks in one request what each number of servers would give, and takes the least
that keeps the limits. It takes servers away only if fewer were enough for an hour. Nothing but Python's standard library is needed.
"""
import json
import math
import sys
import urllib.request

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
SERVER = {"model": "llama-3.1-8b", "gpu": "H100", "prompt": 1024, "output": 256, "schedule": "continuous", "requests": 200}
MOST_TTFT_S, MOST_TPOT_S = 0.5, 0.03  # 99th percentiles
MOST_SERVERS = 12
STEP_H = 0.25
KEEP_STEPS = 4


def load_per_s(hour: float) -> float:
    """Requests a second: quiet nights, two peaks a day."""
    return 45 + 135 * max(0.0, math.sin((hour - 6) / 16 * math.pi)) + 75 * math.exp(-((hour - 19) ** 2) / 2)


def ask(rates: list[float]) -> list[dict]:
    """What one server gives at each rate: a line for each, in order."""
    lines = "".join(json.dumps({**SERVER, "rate": round(rate, 2)}) + "\n" for rate in rates)
    request = urllib.request.Request(URL + "/v1/forecast_many?fields=ttft_s,tpot_s,error", lines.encode(), {"Content-Type": "application/x-ndjson"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return [json.loads(line) for line in response]


def servers_for(rate_per_s: float) -> tuple[int, dict]:
    """The least number of servers that keeps the limits, and what they give."""
    counts = range(1, MOST_SERVERS + 1)
    for count, forecast in zip(counts, ask([rate_per_s / count for count in counts]), strict=True):
        if forecast["error"] is None and forecast["ttft_s"] <= MOST_TTFT_S and forecast["tpot_s"] <= MOST_TPOT_S:
            return count, forecast
    return MOST_SERVERS, {"ttft_s": math.nan, "tpot_s": math.nan}


def main() -> None:
    running, enough = 1, []
    print("  time  requests/s  needed  running   TTFT ms  TPOT ms")
    for step in range(int(24 / STEP_H)):
        hour = step * STEP_H
        needed, forecast = servers_for(load_per_s(hour + STEP_H))
        enough = [*enough, needed][-KEEP_STEPS:]
        running = max(enough)
        if step % 8 == 0:
            print(f" {int(hour):2}:{int(hour % 1 * 60):02}  {load_per_s(hour):10.1f}  {needed:6}  {running:7}  {1e3 * forecast['ttft_s']:8.0f}  {1e3 * forecast['tpot_s']:7.1f}")


if __name__ == "__main__":
    main()
