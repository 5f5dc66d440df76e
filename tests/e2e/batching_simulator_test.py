"""The simulator behind bench/batching: its step times are fitted rightly, no method gives out more memory than there is,
and each one answers every request.

usage: batching_simulator_test.py DUNLIN (which it does not need)"""

import pathlib
import random
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "bench"))
from batching_simulator import STEP_TOKENS, Contiguous, Paged, StepTime, continuous, fit, static, workload  # noqa: E402

STEP = StepTime(fixed=.008, prompt=.001, answer=.001, position=4e-7)


class Checked:
    """A memory whose every change is checked."""

    def __init__(self, memory, case):
        self.memory, self.case, self.capacity = memory, case, memory.capacity

    def admit(self, *arguments):
        return self.check(self.memory.admit(*arguments))

    def grow(self, *arguments):
        return self.check(self.memory.grow(*arguments))

    def release(self, key):
        self.memory.release(key)

    def waste(self, running, waiting):
        shares = self.memory.waste(running, waiting)
        self.case.assertTrue(all(share >= 0 for share in shares) and sum(shares) <= 1 + 1e-9, shares)
        return shares

    def check(self, answer):
        if isinstance(self.memory, Paged):
            self.case.assertLessEqual(sum(self.memory.blocks.values()), self.memory.total)
        else:
            end = 0
            for begin, size in sorted(self.memory.places.values()):
                self.case.assertGreaterEqual(begin, end)
                end = begin + size
            self.case.assertLessEqual(end, self.capacity)
        return answer


class Simulator(unittest.TestCase):
    def test_step_times_are_found_again(self):
        records = []
        for prompt in (64, 512, 1024):
            for batch in (1, 4, 32):
                steps = batch * -(-prompt // STEP_TOKENS)
                records.append({"pp": prompt, "tg": 16, "pl": batch,
                                "t_pp": steps * STEP.of(0, 0, 0) + STEP.prompt * batch * prompt
                                + STEP.position * batch * prompt * prompt / 2 / STEP_TOKENS,
                                "t_tg": 16 * STEP.of(0, batch, batch * (prompt + 8))})
        found = fit(records)
        for name, value in vars(STEP).items():
            self.assertAlmostEqual(getattr(found, name) / value, 1, places=6, msg=name)

    def test_no_coefficient_is_negative(self):
        source = random.Random(1)
        for _ in range(50):
            records = [{"pp": prompt, "tg": 8, "pl": batch, "t_pp": source.uniform(.01, 9), "t_tg": source.uniform(.01, 9)}
                       for prompt in (16, 300, 900) for batch in (1, 8)]
            self.assertGreaterEqual(min(vars(fit(records)).values()), 0)

    def check_all_answered(self, requests, result):
        self.assertEqual(len(result.sequences), len(requests))
        for sequence in result.sequences:
            self.assertEqual(sequence.made, sequence.request["output"])
            self.assertGreater(sequence.first_s, sequence.request["arrival_s"])
            self.assertGreaterEqual(sequence.end_s, sequence.first_s)

    def test_static_batches_answer_everything(self):
        for rate in (0, .3, 5):
            requests = workload(60, rate, 3)
            for padded in (True, False):
                for window_s in (None, 0, 2):
                    self.check_all_answered(requests, static(requests, STEP, 8, padded, 2048, 8 * 2048, window_s))

    def test_continuous_batches_answer_everything_in_any_memory(self):
        for seed in range(12):
            source = random.Random(seed)
            requests = workload(40, source.choice((0, 1, 8)), seed)
            for memory in (Paged(source.choice((1536, 4096, 40_000))),
                           Contiguous(source.choice((2048, 9000)), lambda _: 2048),
                           Contiguous(source.choice((2048, 9000)), lambda request: request["prompt"] + request["limit"])):
                for chunked in (True, False):
                    result = continuous(requests, STEP, source.choice((1, 4, 64)), Checked(memory, self), chunked=chunked)
                    self.check_all_answered(requests, result)

    def test_blocks_waste_little_and_reservations_much(self):
        requests = workload(100, 0, 1)
        paged = continuous(requests, STEP, 64, Paged(16 * 2048)).figures()
        reserved = continuous(requests, STEP, 64, Contiguous(16 * 2048, lambda _: 2048)).figures()
        self.assertLess(paged["kv_internal"] / (paged["kv_used"] + paged["kv_internal"]), .04)
        self.assertGreater(reserved["kv_internal"], .4)
        self.assertGreater(paged["sequences_at_once"], 2 * reserved["sequences_at_once"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
