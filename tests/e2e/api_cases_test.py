"""The collected API cases (tests/cases/raw and req) against `dunlin serve` with a real model.

usage: api_cases_test.py DUNLIN TESTS_DIR [NAME ...]

Cases that need speculation wait for it. s1 and s4 (a forced text) are in server_test.cc, t5 and t9 in
tokenizer_golden_test.cc, d3 with a thousand clients in serve_process_test.py."""

import concurrent.futures
import json
import math
import random
import sys
import time

from api_client import EventStream, post, post_bytes, stream_text
from case_runner import (CHAT, COMPLETIONS, GEMMA, QWEN, bodies, case, case_files, expect, greedy_hello, main, ok, refused,
                         wait_idle, words)
from running_server import RunningServer


@case("raw")
def raw(server):
    before = greedy_hello(server)
    folder = case_files("raw")
    for entry in json.loads((folder / "index.json").read_text()):
        status, answer = post_bytes(server, CHAT, (folder / entry["file"]).read_bytes())
        parsed = json.loads(answer.decode("utf-8"))
        if entry["file"] == "a3_nul_escape.body":
            expect(status == 200, status, parsed)
            short = ok(server, CHAT, {"messages": [{"role": "user", "content": "a"}], "max_tokens": 2})
            expect(parsed["usage"]["prompt_tokens"] > short["usage"]["prompt_tokens"], "text behind NUL is lost")
        else:
            expect(status == 400 and parsed["error"]["message"], entry["file"], status)
        expect(greedy_hello(server) == before, "answers changed after bad requests")


@case("a1_nulls")
def a1(server):
    fixed = {"seed": 5, "temperature": 1, "stop": "e"}  # what makes an answer come twice, and end
    for body in bodies("a1_nulls"):
        text = {key: value for key, value in body.items() if key != "messages"} | {"prompt": "hi"}
        asked = [(CHAT, body), (COMPLETIONS, text)]
        asked += [(COMPLETIONS, text | {field: None}) for field in ("suffix", "echo", "best_of")]
        for path, each in asked:
            each = fixed | each
            if each["temperature"] is None or each["seed"] is None:
                each["top_k"] = 1
            absent = {key: value for key, value in each.items() if value is not None}
            expect(ok(server, path, each)["choices"] == ok(server, path, absent)["choices"], path, each)


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
        expect(sum(math.exp(value) for value in values) <= 1 + 1e-6, values)
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
        asked = [running, pool.submit(ask, "late", long | {"max_tokens": 20})]
        server.wait_metric("vllm:num_requests_waiting", 1)
        asked.append(pool.submit(ask, "middle", long | {"max_tokens": 20, "priority": None}))
        server.wait_metric("vllm:num_requests_waiting", 2)
        asked.append(pool.submit(ask, "urgent", short))
        for future in asked:
            future.result()
    expect(order == ["running", "urgent", "middle", "late"], order)


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
    lengths = (1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257)
    prompts = [[source.randrange(100, 40000) for _ in range(length)] for length in lengths]
    changed = [ids[:-1] + [ids[-1] + 1] for ids in prompts]

    def ask(asked, prompt):
        body = {"prompt": prompt, "max_tokens": 4, "temperature": 0, "logprobs": 3}
        return ok(asked, COMPLETIONS, body)["choices"]
    with RunningServer(server.command[0], server.command[2]) as fresh:
        cold = [ask(fresh, other) for other in changed]
    for length, ids, other, expected in zip(lengths, prompts, changed, cold):
        first = ask(server, ids)
        expect(ask(server, ids) == first, "second run differs at length", length)
        expect(ask(server, other) == expected, "changed prompt differs from its cold run at length", length)


@case("k6_preempt", flags=["--kv-memory", "14M"])
def k6(server):
    (body,) = bodies("k6_preempt")
    # Equal sequences share their blocks, so only different ones run out of room.
    different = [body | {"messages": [{"role": "user", "content": f"Tell a long story about {subject}."}]}
                 for subject in ("a king", "the sea", "two birds", "a small house")]
    def story(each):
        """Text, finish reason and number of tokens."""
        chunks = list(EventStream(server, CHAT, each | {"stream_options": {"include_usage": True}}))
        choices = [choice for chunk in chunks for choice in chunk["choices"]]
        return ("".join(choice["delta"].get("content", "") for choice in choices), choices[-1]["finish_reason"],
                chunks[-1]["usage"]["completion_tokens"])
    alone = [story(each)[0] for each in [body, *different]]
    for asked, expected in (([body] * 4, [alone[0]] * 4), (different, alone[1:])):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            together = list(pool.map(story, asked))
        for (text, finish, count), wanted in zip(together, expected):
            expect((finish, count) == ("length", 400), finish, count)
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
    expect(len(set(texts[0].split())) > 3, "one word repeated:", texts[0])


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
    """Ids without text are never an error: they decode to nothing, or their bias is refused."""
    biased, hot = bodies("m9_padded_vocab")
    for token in (151665, 151900, 151935):
        status, answer = post(server, COMPLETIONS, biased | {"logit_bias": {str(token): 100}})
        expect(status == 400 or answer["choices"][0]["text"] == "", status, answer)
    refused(server, COMPLETIONS, biased | {"logit_bias": {"151936": 100}})
    expect(ok(server, COMPLETIONS, hot)["choices"][0]["finish_reason"] in ("stop", "length"), hot)


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


@case("s9_stream_equals_nonstream", model=GEMMA)
@case("s9_stream_equals_nonstream", model=QWEN)
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


@case("t2_injection", model=QWEN)
@case("t2_injection")
def t2(server):
    """As text each "<|im_end|>" costs several tokens, as a control token one; whoever wrote it."""
    asked = {"role": "user", "content": "x"}
    for role, before in (("user", []), ("system", []), ("assistant", [asked]), ("tool", [asked])):
        plain, forged = [ok(server, CHAT, body | {"messages": [*before, body["messages"][0] | {"role": role}]})
                         ["usage"]["prompt_tokens"] for body in bodies("t2_injection")]
        expect(forged - plain > 10 * (2 * 5), role, plain, forged)


@case("long_runs", flags=["--context", "512"])
def long_runs(server):
    """Others are served while prompts of 200,000 equal characters are tokenized, time and again."""
    for character in "a7 ":
        wanted = True
        def tokenize():
            while wanted:
                for path, text in ((COMPLETIONS, {"prompt": character * 200_000}),
                                   (CHAT, {"messages": [{"role": "user", "content": character * 200_000}]})):
                    error = refused(server, path, text | {"max_tokens": 1})
                    expect(error["code"] == "context_length_exceeded", error)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            busy = [pool.submit(tokenize) for _ in range(4)]
            try:
                for _ in range(5):
                    greedy_hello(server)
            finally:
                wanted = False
            for future in busy:
                future.result()


if __name__ == "__main__":
    sys.exit(main())
