"""Simulates how requests share one machine: batching from one at a time to continuous, and KV memory from contiguous
reservations to blocks. Time is what a step takes by a model fitted to measurements; nothing here is in the product.

A request is a dict: arrival_s, prompt, output (tokens). A policy gives each request its times."""

import dataclasses
import random

BLOCK = 16
STEP_TOKENS = 512


@dataclasses.dataclass
class StepTime:
    """Seconds of a step: fixed + per prompt token + per answer token + per position that is attended to."""
    fixed: float
    prompt: float
    answer: float
    position: float

    def of(self, prompt_tokens, sequences, positions):
        return self.fixed + self.prompt * prompt_tokens + self.answer * sequences + self.position * positions


def solve(rows, values):
    """Least squares by normal equations; negative coefficients are set to zero and the rest solved again."""
    active = list(range(len(rows[0])))
    while True:
        n = len(active)
        a = [[sum(row[active[i]] * row[active[j]] for row in rows) for j in range(n)] +
             [sum(row[active[i]] * value for row, value in zip(rows, values))] for i in range(n)]
        for i in range(n):
            pivot = max(range(i, n), key=lambda k: abs(a[k][i]))
            a[i], a[pivot] = a[pivot], a[i]
            for k in range(n):
                if k != i and a[i][i]:
                    factor = a[k][i] / a[i][i]
                    a[k] = [x - factor * y for x, y in zip(a[k], a[i])]
        found = [a[i][n] / a[i][i] if a[i][i] else 0 for i in range(n)]
        if min(found) >= 0:
            result = [0.0] * len(rows[0])
            for index, value in zip(active, found):
                result[index] = value
            return result
        active.remove(active[found.index(min(found))])


def fit(records):
    """StepTime from `dunlin bench batched -o jsonl`: each record gives its prompts' steps and its decode steps."""
    rows, values = [], []
    for record in records:
        prompt, gen, batch = record["pp"], record["tg"], record["pl"]
        steps = batch * -(-prompt // STEP_TOKENS)
        rows.append([steps, batch * prompt, 0, batch * prompt * prompt / 2 / STEP_TOKENS])
        values.append(record["t_pp"])
        rows.append([gen, 0, gen * batch, gen * batch * (prompt + gen / 2)])
        values.append(record["t_tg"])
    weights = [1 / value for value in values]  # relative errors count alike
    found = solve([[x * w for x in row] for row, w in zip(rows, weights)], [1.0] * len(rows))
    return StepTime(*found)


def workload(count, rate, seed, prompt=(32, 1024), output=(16, 256), limit=None):
    """Uniform lengths, Poisson arrivals. `limit`: the max_tokens that clients state; they use `output` of it."""
    source, now, requests = random.Random(seed), 0.0, []
    for _ in range(count):
        requests.append({"arrival_s": now, "prompt": source.randint(*prompt), "output": source.randint(*output),
                         "limit": limit or output[1]})
        now += source.expovariate(rate) if rate else 0
    return requests


# ---- KV memory: each gives a request a place, or None where there is no room ----

class Contiguous:
    """One run of slots a request, first fit. `size` gives its length; what is behind the answer's end is waste."""

    def __init__(self, capacity, size):
        self.capacity, self.size, self.places = capacity, size, {}

    def admit(self, key, sequence, running):
        size, at = self.size(sequence.request), 0
        for begin, length in sorted(self.places.values()):
            if begin - at >= size:
                break
            at = begin + length
        if at + size > self.capacity:
            return False
        self.places[key] = (at, size)
        return True

    def grow(self, key, tokens):
        return True

    def release(self, key):
        del self.places[key]

    def waste(self, running, waiting):
        """Shares of the memory: used, reserved for tokens still to come, internal (never used), external (free, but no
        run of it is long enough for who waits)."""
        used = reserved = internal = 0
        for key, (_, size) in self.places.items():
            sequence = running[key]
            final = sequence.request["prompt"] + sequence.request["output"]
            used += sequence.tokens
            reserved += final - sequence.tokens
            internal += size - final
        free = self.capacity - sum(size for _, size in self.places.values())
        external = free if waiting else 0
        return [part / self.capacity for part in (used, reserved, internal, external)]


class Paged:
    """Blocks of 16, taken one by one as a sequence grows."""

    def __init__(self, capacity):
        self.capacity, self.total, self.blocks = capacity, capacity // BLOCK, {}

    def free(self):
        return self.total - sum(self.blocks.values())

    def admit(self, key, sequence, running):
        """As the engine: room for all that is known and a block for each that runs, doubled with each preemption."""
        need = -(-(sequence.target + 1) // BLOCK)
        growth = len(running) << min(sequence.preemptions, 6)
        if need + growth > self.free():
            return False
        self.blocks[key] = need
        return True

    def grow(self, key, tokens):
        need = -(-tokens // BLOCK) - self.blocks[key]
        if need > self.free():
            return False
        self.blocks[key] += max(need, 0)
        return True

    def release(self, key):
        del self.blocks[key]

    def waste(self, running, waiting):
        held = sum(self.blocks.values()) * BLOCK
        used = sum(running[key].tokens for key in self.blocks)
        reserved = sum(running[key].target - running[key].computed for key in self.blocks)  # of prompts under way
        free = self.capacity - held if waiting else 0
        return [part / self.capacity for part in (used, reserved, held - used - reserved, free)]


# ---- batching ----

class Sequence:
    def __init__(self, request):
        self.request, self.made, self.preemptions = request, 0, 0
        self.computed, self.target = 0, request["prompt"]  # before it decodes
        self.first_s = self.last_s = self.end_s = None
        self.gaps_s = []

    @property
    def tokens(self):
        """Slots that are filled."""
        return self.computed if self.computed < self.target else self.request["prompt"] + self.made

    def preempt(self):
        """What it has made is computed again, with its prompt."""
        self.computed, self.target = 0, self.request["prompt"] + self.made
        self.preemptions += 1

    def make(self, now):
        self.made += 1
        if self.first_s is None:
            self.first_s = now
        else:
            self.gaps_s.append(now - self.last_s)
        self.last_s = now
        if self.made == self.request["output"]:
            self.end_s = now


class Result:
    def __init__(self):
        self.sequences, self.shares, self.batch_time, self.busy = [], [0.0] * 4, 0.0, 0.0

    def note(self, seconds, num_running, waste):
        """A step took so long, with so many sequences and these shares of the memory; averages are over time."""
        self.batch_time += seconds * num_running
        self.busy += seconds
        self.shares = [have + seconds * part for have, part in zip(self.shares, waste)]

    def figures(self):
        done = [s for s in self.sequences if s.end_s is not None]
        latency = sorted(s.end_s - s.request["arrival_s"] for s in done)
        first = sorted(s.first_s - s.request["arrival_s"] for s in done)
        gaps = sorted(gap for s in done for gap in s.gaps_s)
        duration = max(s.end_s for s in done)
        at = lambda values, p: values[min(int(p * len(values)), len(values) - 1)]
        shares = [part / self.busy for part in self.shares] if self.busy else [0] * 4
        return {"requests": len(done), "duration_s": duration,
                "output_tokens_per_s": sum(s.made for s in done) / duration,
                "median_ttft_s": at(first, .5), "p99_ttft_s": at(first, .99), "median_latency_s": at(latency, .5),
                "p99_latency_s": at(latency, .99), "p99_itl_s": at(gaps, .99) if gaps else 0, "sequences_at_once": self.batch_time / self.busy,
                **dict(zip(("kv_used", "kv_reserved", "kv_internal", "kv_external"), shares))}


def rectangle_waste(sequences, context, capacity):
    """As Contiguous.waste, of a batch that holds `context` slots a sequence until all of it is done."""
    alive = [s for s in sequences if s.end_s is None]
    used = sum(s.tokens for s in alive)
    reserved = sum(s.request["prompt"] + s.request["output"] - s.tokens for s in alive)
    return [part / capacity for part in (used, reserved, len(sequences) * context - used - reserved, 0)]


def static(requests, step, size, padded, context, capacity, window_s=None):
    """Batches of `size`, each sequence with `context` slots; the next begins when all of the last is done. `window_s`: a
    batch waits no longer than that for its others (None: until it is full)."""
    result, now, queue = Result(), 0.0, list(requests)
    while queue:
        batch = queue[:size]
        full_s = batch[-1]["arrival_s"]
        if window_s is not None:
            begin = max(now, batch[0]["arrival_s"])
            batch = [r for r in batch if r["arrival_s"] <= max(begin, batch[0]["arrival_s"] + window_s)]
            full_s = batch[-1]["arrival_s"] if len(batch) == size else max(begin, batch[0]["arrival_s"] + window_s)
        now, queue = max(now, full_s), queue[len(batch):]
        sequences = [Sequence(r) for r in batch]
        result.sequences += sequences
        longest, most = max(r["prompt"] for r in batch), max(r["output"] for r in batch)
        prompts = [longest if padded else r["prompt"] for r in batch]
        for sequence, length in zip(sequences, prompts):
            seconds = step.of(length, 0, length * length / 2 / STEP_TOKENS) + step.fixed * ((length - 1) // STEP_TOKENS)
            now += seconds
            result.note(seconds, len(sequences), rectangle_waste(sequences, context, capacity))
            sequence.computed = sequence.target
        for sequence in sequences:
            sequence.make(now)
        for made in range(1, most):
            rows = [s for s in sequences if padded or s.end_s is None]
            seconds = step.of(0, len(rows), sum((longest if padded else s.request["prompt"]) + made for s in rows))
            now += seconds
            result.note(seconds, sum(s.end_s is None for s in sequences), rectangle_waste(sequences, context, capacity))
            for sequence in sequences:
                if sequence.end_s is None:
                    sequence.make(now)
    return result


def admit_waiting(waiting, running, names, size, memory):
    while waiting and len(running) < size:
        name = next(names)
        if not memory.admit(name, waiting[0], running):
            return
        running[name] = waiting.pop(0)


def prefill(running, left, chunked):
    """Prompt tokens of a step: (how many, positions they attend to, the sequences that are now whole)."""
    tokens, positions, finished = 0, 0, []
    for name, sequence in running.items():
        missing = sequence.target - sequence.computed
        if missing == 0:
            continue
        if left <= 0:
            break
        chunk = min(missing, left) if chunked else missing
        positions += chunk * (sequence.computed + chunk / 2) / STEP_TOKENS
        sequence.computed += chunk
        tokens, left = tokens + chunk, left - chunk
        if sequence.computed == sequence.target:
            finished.append(name)
    return tokens, positions, finished


def make_room(name, running, waiting, memory):
    """Preempts the newest until `name` has a slot for its next token; False where it was itself the newest."""
    while not memory.grow(name, running[name].tokens + 1):
        newest = max(running)
        memory.release(newest)
        waiting.insert(0, running.pop(newest))
        waiting[0].preempt()
        if newest == name:
            return False
    return True


def continuous(requests, step, size, memory, budget=STEP_TOKENS, chunked=True):
    """Each step: an answer token of each running sequence, and prompts of waiting ones as the budget and the memory
    allow. Without `chunked`, prompts are computed whole, in steps of their own."""
    result, now, arriving, waiting, running, names = Result(), 0.0, list(requests), [], {}, iter(range(1 << 30))
    while arriving or waiting or running:
        while arriving and arriving[0]["arrival_s"] <= now:
            waiting.append(Sequence(arriving.pop(0)))
            result.sequences.append(waiting[-1])
        if not waiting and not running:
            now = arriving[0]["arrival_s"]
            continue
        admit_waiting(waiting, running, names, size, memory)
        decoding = [name for name, s in running.items() if s.computed == s.target]
        tokens, positions, finished = prefill(running, budget - len(decoding), chunked)
        if tokens and not chunked:
            decoding = []
        decoding = [name for name in decoding if name in running and make_room(name, running, waiting, memory)]
        decoding, finished = ([name for name in some if name in running] for some in (decoding, finished))
        seconds = step.of(tokens, len(decoding), positions + sum(running[name].tokens for name in decoding))
        now += seconds
        result.note(seconds, len(running), memory.waste(running, bool(waiting)))
        for name in decoding + finished:
            running[name].make(now)
            if running[name].end_s is not None:
                memory.release(name)
                del running[name]
    return result
