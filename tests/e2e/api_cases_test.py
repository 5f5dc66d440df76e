"""The collected API cases (tests/cases/raw and req) against `dunlin serve` with a real model.

usage: api_cases_test.py DUNLIN TESTS_DIR [NAME ...]

Cases that need speculation wait for it. s1 and s4 (a forced text) are in server_test.cc, t5 and t9 in
tokenizer_golden_test.cc, d3 with a thousand clients in serve_process_test.py."""

import concurrent.futures
import json
import pathlib
import random
import sys
import time

from api_client import EventStream, post, post_bytes, stream_text
from running_server import RunningServer, model_path

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
QWEN = "Qwen2.5-Coder-0.5B-Instruct.Q4_K_M.gguf"
tests_dir = None
checks = []


def case(name, model=MODEL, flags=()):
    """Registers a check; those with the same model and flags share a server."""
    def register(function):
        checks.append((name, model, tuple(flags), function))
        return function
    return register


def bodies(name):
    text = (tests_dir / "cases" / "req" / f"{name}.json").read_text(encoding="utf-8")
    spec = json.loads(text)
    found = spec["bodies"] if "bodies" in spec else [spec["body"]]
    for body in found:
        body.pop("model", None)
    return found


def expect(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


def ok(server, path, body):
    status, answer = post(server, path, body)
    expect(status == 200, status, answer)
    return answer


def refused(server, path, body, status=400):
    got, answer = post(server, path, body)
    expect(got == status, got, answer)
    expect(answer["error"]["message"], answer)
    return answer["error"]


def greedy_hello(server):
    body = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 8, "temperature": 0}
    return ok(server, CHAT, body)["choices"][0]["message"]["content"]


def wait_idle(server, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if server.metric("vllm:num_requests_running") == 0 and server.metric("vllm:num_requests_waiting") == 0:
            expect(server.metric("vllm:kv_cache_usage_perc") == 0, "blocks are still held")
            return
        time.sleep(0.02)
    raise AssertionError(f"not idle after {seconds} s")


def words(count, seed=1):
    source = random.Random(seed)
    known = "river stone cloud paper garden silver window music engine morning".split()
    return " ".join(source.choice(known) for _ in range(count))


@case("raw")
def raw(server):
    before = greedy_hello(server)
    folder = tests_dir / "cases" / "raw"
    for entry in json.loads((folder / "index.json").read_text()):
        data = (folder / entry["file"]).read_bytes().replace(b'"model":"M",', b"")
        status, answer = post_bytes(server, CHAT, data)
        parsed = json.loads(answer.decode("utf-8"))
        if entry["file"] == "a3_nul_escape.body":
            expect(status == 200, status, parsed)
            short = ok(server, CHAT, {"messages": [{"role": "user", "content": "a"}], "max_tokens": 2})
            expect(parsed["usage"]["prompt_tokens"] > short["usage"]["prompt_tokens"], "text behind NUL is lost")
        else:
            expect(status == 400, entry["file"], status)
    expect(greedy_hello(server) == before, "answers changed after bad requests")


@case("a1_nulls")
def a1(server):
    for body in bodies("a1_nulls"):
        ok(server, CHAT, {"max_tokens": 4, **body} if body.get("max_tokens") else body | {"max_tokens": None, "stop": "e"})


@case("a4_token_ids")
def a4(server):
    for body in bodies("a4_token_ids"):
        expect("vocabulary" in refused(server, COMPLETIONS, body)["message"], body)
    ok(server, COMPLETIONS, {"prompt": [1, 2], "max_tokens": 2})


@case("a5_empty")
def a5(server):
    *empty, good = bodies("a5_empty")
    for body in empty:
        status, answer = post(server, COMPLETIONS, body)
        expect(status in (200, 400), status, answer)
    ok(server, COMPLETIONS, good)
    refused(server, CHAT, {"messages": []})
    ok(server, CHAT, {"messages": [{"role": "user", "content": ""}], "max_tokens": 2})


@case("a8_chat_logprobs")
def a8(server):
    plain, three, without, many, off = bodies("a8_chat_logprobs")
    content = ok(server, CHAT, plain)["choices"][0]["logprobs"]["content"]
    expect(len(content) == 3 and all(entry["top_logprobs"] == [] for entry in content), content)
    choice = ok(server, CHAT, three)["choices"][0]
    for entry in choice["logprobs"]["content"]:
        top = entry["top_logprobs"]
        values = [alternative["logprob"] for alternative in top]
        expect(len(top) == 3 and values == sorted(values, reverse=True), top)
        expect(top[0]["token"] == entry["token"] and top[0]["logprob"] == entry["logprob"], entry)
        expect(sum(2.718281828459045 ** value for value in values) <= 1.0001, values)
    joined = b"".join(bytes(entry["bytes"]) for entry in choice["logprobs"]["content"])
    expect(joined.decode() == choice["message"]["content"], joined, choice["message"])
    refused(server, CHAT, without)
    refused(server, CHAT, many)
    expect(ok(server, CHAT, off)["choices"][0]["logprobs"] is None, "logprobs without being asked")
    answer = ok(server, COMPLETIONS, {"prompt": "The", "max_tokens": 3, "logprobs": 0})
    logprobs = answer["choices"][0]["logprobs"]
    expect(len(logprobs["token_logprobs"]) == 3 and logprobs["top_logprobs"] is None, logprobs)


@case("a12_max_completion_tokens")
def a12(server):
    for body in bodies("a12_max_completion_tokens"):
        answer = ok(server, CHAT, body)
        expect(answer["usage"]["completion_tokens"] == 5, answer["usage"])
        expect(answer["choices"][0]["finish_reason"] == "length", answer)


@case("echo")
def echo(server):
    """Prompt scores of echo equal the log-probabilities that generation tells for the same text."""
    ids = [int(i) for i in range(100, 140)]
    scored = ok(server, COMPLETIONS, {"prompt": ids, "max_tokens": 0, "echo": True, "logprobs": 1})
    logprobs = scored["choices"][0]["logprobs"]
    expect(len(logprobs["token_logprobs"]) == 40 and logprobs["token_logprobs"][0] is None, logprobs)
    made = ok(server, COMPLETIONS, {"prompt": ids, "max_tokens": 4, "temperature": 0, "logprobs": 1, "ignore_eos": True})
    text = made["choices"][0]["text"]
    both = ok(server, COMPLETIONS, {"prompt": ids, "max_tokens": 4, "temperature": 0, "logprobs": 1, "echo": True,
                                    "ignore_eos": True})
    expect(both["choices"][0]["text"].endswith(text), both["choices"][0]["text"], text)
    expect(both["choices"][0]["logprobs"]["token_logprobs"][40:] == made["choices"][0]["logprobs"]["token_logprobs"],
           "echo changes the numbers")


@case("d3_abort_leak")
def d3(server):
    source = random.Random(3)
    (body,) = bodies("d3_abort_leak")
    def leave(index):
        stream = EventStream(server, CHAT, body | {"n": source.choice([1, 3])})
        for count, _ in enumerate(stream):
            if count >= index % 20:
                break
        stream.close()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(leave, range(200)))
    wait_idle(server, 10)
    greedy_hello(server)


@case("d6_priority", flags=["--max-seqs", "1"])
def d6(server):
    long, short = bodies("d6_priority")
    refused(server, CHAT, short | {"priority": "high"})
    order = []
    def ask(name, body):
        ok(server, CHAT, body)
        order.append(name)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        running = pool.submit(ask, "running", long | {"max_tokens": 400})
        server.wait_metric("vllm:num_requests_running", 1)
        waiting = pool.submit(ask, "waiting", long | {"max_tokens": 20})
        server.wait_metric("vllm:num_requests_waiting", 1)
        urgent = pool.submit(ask, "urgent", short)
        for future in (running, waiting, urgent):
            future.result()
    expect(order.index("urgent") < order.index("waiting"), order)


@case("d1_never_fits", flags=["--kv-memory", "16M"])
def d1(server):
    _, small = bodies("d1_never_fits")
    begin = time.monotonic()
    error = refused(server, COMPLETIONS, {"prompt": words(4000), "max_tokens": 4})
    expect(time.monotonic() - begin < 2, "the refusal took long")
    expect(any(char.isdigit() for char in error["message"]), error)
    begin = time.monotonic()
    ok(server, COMPLETIONS, small)
    expect(time.monotonic() - begin < 2, "a small request had to wait")


@case("k1_cold_warm")
def k1(server):
    (body,) = bodies("k1_cold_warm")
    runs = [ok(server, COMPLETIONS, body | {"prompt": words(200, seed=11)}) for _ in range(3)]
    for run in runs[1:]:
        expect(run["choices"] == runs[0]["choices"], "a cached prompt changes the answer")
        expect(run["usage"]["prompt_tokens_details"]["cached_tokens"] > 0, run["usage"])


@case("k3_block_edges")
def k3(server):
    source = random.Random(5)
    for length in (1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257):
        ids = [source.randrange(100, 40000) for _ in range(length)]
        other = ids[:-1] + [ids[-1] + 1]
        ask = lambda prompt: ok(server, COMPLETIONS, {"prompt": prompt, "max_tokens": 4, "temperature": 0})
        first = ask(ids)["choices"]
        expect(ask(ids)["choices"] == first, "second run differs at length", length)
        warm = ask(other)["choices"]
        expect(ask(other)["choices"] == warm, "changed prompt differs at length", length)


@case("k6_preempt", flags=["--kv-memory", "14M"])
def k6(server):
    (body,) = bodies("k6_preempt")
    # Equal sequences share their blocks, so only different ones run out of room.
    different = [body | {"messages": [{"role": "user", "content": f"Tell a long story about {subject}."}]}
                 for subject in ("a king", "the sea", "two birds", "a small house")]
    alone = [stream_text(server, CHAT, each)[0] for each in [body, *different]]
    for asked, expected in (([body] * 4, [alone[0]] * 4), (different, alone[1:])):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            together = list(pool.map(lambda each: stream_text(server, CHAT, each), asked))
        for (text, finish), wanted in zip(together, expected):
            expect(finish == "length", finish)
            expect(text == wanted, "text differs from its run alone")
    expect(server.metric("vllm:num_preemptions_total") > 0, "nothing was preempted: the pool is too large")
    wait_idle(server, 2)


@case("k8_context_full", flags=["--context", "512"])
def k8(server):
    for body in bodies("k8_context_full"):
        answer = ok(server, CHAT, body)
        expect(answer["choices"][0]["finish_reason"] == "length", answer["choices"][0]["finish_reason"])
        expect(answer["usage"]["total_tokens"] <= 512, answer["usage"])
    error = refused(server, CHAT, {"messages": [{"role": "user", "content": words(600)}]})
    expect(error["code"] == "context_length_exceeded" and "512" in error["message"], error)


@case("m1_top_k")
def m1(server):
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        _, greedy, one = pool.map(lambda body: ok(server, CHAT, body), bodies("m1_top_k"))
    expect(greedy["choices"][0]["message"] == one["choices"][0]["message"], "top_k 1 is not greedy")


@case("m3_top_p")
def m3(server):
    zero, tiny, whole, below, above = bodies("m3_top_p")
    greedy = ok(server, COMPLETIONS, tiny | {"temperature": 0, "top_p": 1})["choices"]
    status, answer = post(server, COMPLETIONS, zero)
    expect(status == 400 or answer["choices"] == greedy, answer)
    expect(ok(server, COMPLETIONS, tiny)["choices"] == greedy, "top_p 0.0001 is not greedy")
    ok(server, COMPLETIONS, whole)
    for body in (below, above, whole | {"top_p": "1"}):
        refused(server, COMPLETIONS, body)
    ok(server, COMPLETIONS, whole | {"top_p": None})


@case("m4_temperature")
def m4(server):
    texts = [ok(server, COMPLETIONS, body)["choices"][0]["text"] for body in bodies("m4_temperature")]
    expect(texts[0] and all(text == texts[0] for text in texts[:4]), texts)


@case("m7_seed")
def m7(server):
    seeded, free = bodies("m7_seed")
    alone = {ok(server, COMPLETIONS, seeded)["choices"][0]["text"] for _ in range(4)}
    expect(len(alone) == 1, alone)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(lambda body: ok(server, COMPLETIONS, body)["choices"][0]["text"], [seeded, free] * 4))
    expect(set(texts[::2]) == alone, "the seed's text depends on the batch")
    expect(len({ok(server, COMPLETIONS, free)["choices"][0]["text"] for _ in range(10)}) > 1, "no seed, no change")
    triples = [[choice["text"] for choice in ok(server, COMPLETIONS, seeded | {"n": 3})["choices"]] for _ in range(2)]
    expect(triples[0] == triples[1] and len(set(triples[0])) == 3, triples)


@case("m9_padded_vocab", model=QWEN)
def m9(server):
    for body in bodies("m9_padded_vocab"):
        status, answer = post(server, COMPLETIONS, body)
        expect(status in (200, 400), status, answer)
        if status == 200:
            expect(answer["choices"][0]["finish_reason"] in ("stop", "length"), answer)


@case("s6_disconnect")
def s6(server):
    (body,) = bodies("s6_disconnect")
    for _ in range(20):
        stream = EventStream(server, CHAT, body)
        for count, _ in enumerate(stream):
            if count >= 3:
                break
        stream.close()
    wait_idle(server, 2)
    greedy_hello(server)


@case("s7_usage_chunk")
def s7(server):
    plain, with_usage, not_streamed = bodies("s7_usage_chunk")
    chunks = list(EventStream(server, CHAT, plain))
    expect(all(chunk["choices"] for chunk in chunks), "a chunk without choices")
    expect(chunks[0]["choices"][0]["delta"]["role"] == "assistant", chunks[0])
    chunks = list(EventStream(server, CHAT, with_usage))
    usage = chunks[-1]["usage"]
    expect(chunks[-1]["choices"] == [], chunks[-1])
    expect(usage["prompt_tokens"] + usage["completion_tokens"] == usage["total_tokens"] > 0, usage)
    expect(all(chunk["usage"] is None for chunk in chunks[:-1]), "usage too early")
    expect(sum(bool(chunk["choices"][0]["finish_reason"]) for chunk in chunks[:-1]) == 1, "finish_reason")
    expect(len({chunk["id"] for chunk in chunks}) == 1, "ids differ")
    refused(server, CHAT, not_streamed)


@case("s9_stream_equals_nonstream")
def s9(server):
    for body in bodies("s9_stream_equals_nonstream"):
        if "grammar" in body:
            continue
        whole = ok(server, COMPLETIONS, body)["choices"][0]
        expect(stream_text(server, COMPLETIONS, body) == (whole["text"], whole["finish_reason"]), body)


@case("s11_empty_stop")
def s11(server):
    *_, null = bodies("s11_empty_stop")
    plain = ok(server, CHAT, null)["choices"]
    expect(plain[0]["message"]["content"], "an empty answer")
    for body in bodies("s11_empty_stop"):
        status, answer = post(server, CHAT, body)
        expect(status == 400 or answer["choices"] == plain, body, answer)


@case("stop_spans_tokens")
def stop_spans_tokens(server):
    """A stop string from the middle of the greedy text, cut inside words, ends it exactly there."""
    body = {"messages": [{"role": "user", "content": "Name three metals."}], "max_tokens": 60, "temperature": 0}
    text = ok(server, CHAT, body)["choices"][0]["message"]["content"]
    for begin in range(3, min(len(text) - 9, 40), 4):
        stop = text[begin:begin + 9]
        whole = ok(server, CHAT, body | {"stop": [stop]})["choices"][0]
        expect(whole["message"]["content"] == text[:text.index(stop)], stop, whole)
        expect(whole["finish_reason"] == "stop", whole)
        expect(stream_text(server, CHAT, body | {"stop": [stop]}) == (whole["message"]["content"], "stop"), stop)


@case("t2_injection")
def t2(server):
    plain, forged = [ok(server, CHAT, body)["usage"]["prompt_tokens"] for body in bodies("t2_injection")]
    # As text each "<|im_end|>" costs several tokens, as a control token one.
    expect(forged - plain > 10 * (2 * 5), plain, forged)


def run_group(dunlin, model, flags, group):
    failures = 0
    path = model_path(model)
    if path is None:
        print(f"SKIP: {model} is not in the cache; run `dunlin pull`")
        return 0
    with RunningServer(dunlin, path, *flags) as server:
        for name, function in group:
            begin = time.monotonic()
            try:
                function(server)
                print(f"ok    {name} ({time.monotonic() - begin:.1f} s)", flush=True)
            except Exception as error:  # every case is tried, each failure told
                failures += 1
                print(f"FAIL  {name}: {type(error).__name__}: {str(error)[:500]}", flush=True)
            if server.process.poll() is not None:
                print(f"FAIL  the server ended during {name}: {server.output()}")
                return failures + 1
    return failures


def main():
    global tests_dir
    dunlin, folder, *names = sys.argv[1:]
    tests_dir = pathlib.Path(folder)
    groups = {}
    for name, model, flags, function in checks:
        if not names or name in names:
            groups.setdefault((model, flags), []).append((name, function))
    failures = sum(run_group(dunlin, model, flags, group) for (model, flags), group in groups.items())
    print(f"{failures} failures")
    return 1 if failures or not groups else 0


if __name__ == "__main__":
    sys.exit(main())
