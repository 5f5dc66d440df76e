"""The works of bench/serving: each starts a server, loads it through `dunlin bench serve`, and gives named figures."""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "bench"))
from comparison import StartedServer, bench_serve, serve_command  # noqa: E402

CLIENTS = 32  # of crowd and soak; of the others --clients
MIXED = ["--input-len", "32:1024", "--output-len", "16:256", "--ignore-eos"]
PREFIX_LEN, SUFFIX_LEN = 2000, 32
STREAMS = 8
OVERLOAD = 1.3  # offered load, of what the faster server sustains


def percentile(values, p):
    values = sorted(values)
    at = p / 100 * (len(values) - 1)
    low = int(at)
    return values[low] + (at - low) * (values[min(low + 1, len(values) - 1)] - values[low])


class Loader:
    """The two servers, and the client that loads them."""

    def __init__(self, options):
        self.dunlin, self.peer, self.threads = options.dunlin, options.peer, options.threads
        self.servers = ("dunlin", "peer") if options.peer else ("dunlin",)
        self.requests = options.requests
        self.long_prompt = getattr(options, "long_prompt", 0)
        self.crowd = getattr(options, "crowd", 0)
        self.soak_s = getattr(options, "soak_s", 0)
        self.first_seed = getattr(options, "first_seed", 1)
        self.clients = getattr(options, "clients", CLIENTS)
        rate = getattr(options, "rate", None)
        self.rates = dict.fromkeys(options.models, rate) if rate else {}  # of each model, for mixed

    def has_flag(self, flag):
        if not hasattr(self, "serve_help"):
            self.serve_help = subprocess.run([self.dunlin, "serve", "--help"], capture_output=True, text=True).stdout
        return flag in self.serve_help

    def server(self, who, model, seqs, context, *flags):
        """`seqs` at once, of `context` tokens each; `flags` are for Dunlin."""
        command = serve_command(who, self.dunlin, self.peer, model, self.threads)
        if who == "dunlin":
            return StartedServer(command + ["--max-seqs", seqs, "--context", context, *flags])
        return StartedServer(command + ["-np", seqs, "-c", seqs * context])

    def load(self, server, *flags):
        """The JSON of `dunlin bench serve`; an error where a request failed."""
        found = bench_serve(self.dunlin, server, *flags)
        if set(found["failures"]) - {"client left", "HTTP 429"}:
            raise SystemExit(f"serving: requests failed: {found['failures']}")
        return found

    def replay(self, server, lines):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as trace:
            trace.write("".join(json.dumps(line) + "\n" for line in lines))
            trace.flush()
            return self.load(server, "--workload", "replay", "--dataset", trace.name, "--ignore-eos", "--records")


def mixed(loader, model, seed):
    """32 clients, mixed lengths, Poisson arrivals at 1.3 times what the faster server sustains."""
    def run(who, count, *flags):
        with loader.server(who, model, loader.clients, 1536) as server:
            return loader.load(server, "-n", count, "--concurrency", loader.clients, "--seed", seed, *MIXED, *flags)

    if model not in loader.rates:
        sustained = max(run(who, max(loader.requests // 2, loader.clients))["request_throughput"] for who in loader.servers)
        loader.rates[model] = OVERLOAD * sustained

    def measure(who):
        found = run(who, loader.requests, "--request-rate", loader.rates[model])
        return {"output tokens/s": found["output_throughput"], "p99 TTFT (ms)": found["p99_ttft_ms"],
                "p99 ITL (ms)": found["p99_itl_ms"], "median TTFT (ms)": found["median_ttft_ms"],
                "mean TPOT (ms)": found["mean_tpot_ms"]}

    return measure


def prefix(loader, model, seed):
    """32 clients at once whose prompts share 2,000 tokens; and the ideal: the same without those, which are computed
    once."""
    context = PREFIX_LEN + 512
    shape = ["-n", loader.clients, "--concurrency", loader.clients, "--input-len", SUFFIX_LEN, "--output-len", 64,
             "--ignore-eos", "--seed", seed]

    def measure(who):
        with loader.server(who, model, loader.clients, context) as server:
            shared = loader.load(server, "--workload", "shared-prefix", "--prefix-len", PREFIX_LEN, *shape)
        figures = {"output tokens/s": shared["output_throughput"]}
        if who == "dunlin":
            with loader.server(who, model, loader.clients, context) as server:
                bare = loader.load(server, *shape)
                once = loader.load(server, "-n", 1, "--input-len", PREFIX_LEN, "--output-len", 1, "--seed", seed)
            figures["share of ideal"] = (bare["duration"] + once["duration"]) / shared["duration"]
        return figures

    return measure


def stall(loader, model, seed):
    """8 streams decode when a long prompt comes: the time between their tokens while it is computed."""
    context = 32 + loader.long_prompt + 160
    def streams(tokens):
        return [{"arrival_s": 0, "prompt_len": 32, "max_tokens": tokens} for _ in range(STREAMS)]

    def usual(who):
        with loader.server(who, model, STREAMS + 1, context) as server:
            return loader.replay(server, streams(64))["mean_tpot_ms"]

    def measure(who):
        usual_ms = usual(who)
        flags = []
        if who == "dunlin" and loader.has_flag("--target-itl-ms"):
            flags = ["--target-itl-ms", f"{3 * usual_ms:.0f}"]
        with loader.server(who, model, STREAMS + 1, context, *flags) as server:
            found = loader.replay(server, streams(loader.long_prompt // 12) +
                                  [{"arrival_s": 2, "prompt_len": loader.long_prompt, "max_tokens": 4}])
        long = max(found["requests"], key=lambda request: request["input_tokens"])
        begin, end = long["start_s"], long["start_s"] + long["ttft_s"]
        gaps = []
        for request in found["requests"]:
            at = request["start_s"] + request["ttft_s"]
            for gap in request["itl_s"]:
                at += gap
                if request is not long and at >= begin and at - gap <= end:
                    gaps.append(1000 * gap)
        worst = percentile(gaps, 99)
        return {"p99 ITL beside the prompt (ms)": worst, "of 3x the usual": worst / (3 * usual_ms),
                "TTFT of the prompt (ms)": 1000 * long["ttft_s"]}

    return measure


def cached(loader, model, seed):
    """Time to the first token behind a system prompt of 2,000 tokens: computed, and cached."""
    def measure(who):
        with loader.server(who, model, 4, PREFIX_LEN + 512) as server:
            found = loader.load(server, "-n", 6, "--concurrency", 1, "--workload", "shared-prefix", "--prefix-len",
                                PREFIX_LEN, "--input-len", SUFFIX_LEN, "--output-len", 4, "--ignore-eos", "--seed", seed,
                                "--records")
        first, *others = [1000 * request["ttft_s"] for request in found["requests"]]
        hit = statistics.median(others)
        return {"TTFT computed (ms)": first, "TTFT cached (ms)": hit, "shorter, cached": first / hit}

    return measure


def no_hits(loader, model, seed):
    """What the cache costs where nothing is ever found in it: the same load with it and without."""
    off = next((flag for flag in ("--no-prefix-cache", "--prefix-cache") if loader.has_flag(flag)), None)

    def measure(who):
        flags = [] if who == "dunlin" else [off] if off == "--no-prefix-cache" else [off, "false"]
        with loader.server("dunlin", model, loader.clients, 1536, *flags) as server:
            found = loader.load(server, "-n", loader.requests, "--concurrency", loader.clients, "--seed", seed, *MIXED)
        return {"output tokens/s, cache on and off": found["output_throughput"]}

    return measure if off else None


def settled_state(server):
    """Memory and descriptors once the server has nothing to do and has noticed who is gone."""
    server.wait_idle()
    process, count = pathlib.Path(f"/proc/{server.process.pid}"), None
    while count != (count := len(os.listdir(process / "fd"))):
        time.sleep(1)
    rss_kib = int((process / "status").read_text().split("VmRSS:")[1].split()[0])
    return {"rss_mib": rss_kib / 1024, "descriptors": count}


def crowd(loader, model, seed):
    """1,000 connections, 10,000 short requests, a third of whose clients leave: what is lost, what is left behind."""
    def load(server, count, seed):
        return loader.load(server, "-n", count, "--concurrency", 1000, "--input-len", "4:32", "--output-len", "1:16",
                           "--ignore-eos", "--leave", 0.33, "--seed", seed)

    def measure(who):
        if who != "dunlin":
            return {}
        with loader.server(who, model, CLIENTS, 256, "--max-connections", 2048, "--max-queue", 1024) as server:
            load(server, min(loader.crowd, 2000), seed + 1000)  # what the first crowd allocates stays
            before = settled_state(server)
            found = load(server, loader.crowd, seed)
            after = settled_state(server)
        left, refused = (found["failures"].get(kind, 0) for kind in ("client left", "HTTP 429"))
        return {"requests lost": loader.crowd - found["completed"] - left - refused, "clients left": left,
                "refused (429)": refused, "requests/s": found["request_throughput"],
                "descriptors more": after["descriptors"] - before["descriptors"],
                "MiB more": after["rss_mib"] - before["rss_mib"]}

    return measure


def soak(loader, model, seed):
    """32 clients for as long as --soak-s says, a tenth of whom leave: whether memory and descriptors stay where they were
    after the first tenth of the time."""
    def measure(who):
        if who != "dunlin":
            return {}
        with loader.server(who, model, CLIENTS, 256) as server:
            begin, states, requests = time.monotonic(), [], 0
            while (passed := time.monotonic() - begin) < loader.soak_s or len(states) < 2:
                found = loader.load(server, "-n", 10 * CLIENTS, "--concurrency", CLIENTS, "--input-len", "4:128",
                                    "--output-len", "1:96", "--ignore-eos", "--leave", 0.1, "--seed", seed + requests)
                requests += found["num_prompts"]
                if passed >= loader.soak_s / 10 or states:
                    states.append(settled_state(server))
        rss = [state["rss_mib"] for state in states]
        return {"requests": requests, "MiB at first": rss[0], "MiB more at most": max(rss) - rss[0],
                "descriptors more": states[-1]["descriptors"] - states[0]["descriptors"]}

    return measure


# Figures of which less is better; of the others more is.
LESS_IS_BETTER = ("TTFT", "ITL", "TPOT", "of 3x", "lost", "more")
# Works whose "peer" is Dunlin with other flags.
AGAINST_ITSELF = ("no-hits",)
WORKS = {"mixed": mixed, "prefix": prefix, "stall": stall, "cached": cached, "no-hits": no_hits, "crowd": crowd, "soak": soak}
