"""A Hugging Face folder as a model: tokenised, run, its template and its recommended sampling used, and
broken folders refused in one line.

Usage: folder_test.py PATH_TO_DUNLIN PATH_TO_TESTS"""

import json
import pathlib
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest

DUNLIN, TESTS = sys.argv[1], pathlib.Path(sys.argv[2])
TEMPLATE = "{% for m in messages %}<|turn|>{{ m.content }}{% endfor %}<|turn|>"


def byte_characters():
    """The printable stand-ins of byte-level BPE (Radford et al., GPT-2)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in plain]
    return {**{b: chr(b) for b in plain}, **{b: chr(256 + i) for i, b in enumerate(rest)}}


def tokenizer():
    vocab = {character: byte for byte, character in byte_characters().items()}
    return {
        "added_tokens": [{"id": 256, "content": "<|turn|>", "special": True, "lstrip": False, "rstrip": False,
                          "single_word": False, "normalized": False}],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": None,
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": {**vocab, "<|turn|>": 256}, "merges": []},
    }


def dunlin(*arguments):
    return subprocess.run([DUNLIN, *map(str, arguments)], capture_output=True, timeout=60, check=False)


class FolderTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        with tarfile.open(TESTS / "golden" / "tiny.tar.xz") as archive:
            members = [m for m in archive.getmembers() if m.name.startswith("tiny/qwen3/")]
            archive.extractall(scratch.name, members=members)
        self.model = pathlib.Path(scratch.name) / "tiny" / "qwen3"
        self.write("tokenizer.json", tokenizer())
        self.write("tokenizer_config.json", {"chat_template": TEMPLATE, "eos_token": "<|turn|>"})
        (self.model / "generation_config.json").unlink(missing_ok=True)

    def write(self, name, value):
        (self.model / name).write_text(json.dumps(value))

    def run_once(self, *arguments):
        done = dunlin("run", self.model, "Hi", "--max-tokens", 12, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def assert_refused(self, *words):
        done = dunlin("run", self.model, "Hi")
        self.assertEqual(done.returncode, 1)
        message = done.stderr.decode()
        self.assertEqual(message.strip().count("\n"), 0, message)
        for word in words:
            self.assertIn(word, message)

    def test_text_becomes_the_tokenizers_ids(self):
        done = dunlin("tokenize", self.model, "Hé", "--output", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([t["id"] for t in json.loads(done.stdout)["tokens"]], [0x48, 0xC3, 0xA9])

    def test_it_answers_and_a_trailing_slash_is_the_same(self):
        answer = self.run_once("--temperature", 0)
        self.assertTrue(answer)
        done = dunlin("run", f"{self.model}/", "Hi", "--max-tokens", 12, "--temperature", 0)
        self.assertEqual(done.stdout, answer)

    def test_the_authors_sampling_is_the_default_and_flags_win(self):
        greedy = self.run_once("--temperature", 0)
        self.write("generation_config.json", {"top_k": 1, "temperature": 5.0, "eos_token_id": [256]})
        for seed in (1, 2, 3):
            self.assertEqual(self.run_once("--seed", seed), greedy)
        self.assertNotEqual(self.run_once("--seed", 1, "--top-k", 0), greedy)

    def test_authors_who_do_not_sample_get_the_likeliest_token(self):
        greedy = self.run_once("--temperature", 0)
        self.write("generation_config.json", {"do_sample": False, "temperature": 5.0})
        for seed in (1, 2, 3):
            self.assertEqual(self.run_once("--seed", seed), greedy)
        self.write("generation_config.json", {"do_sample": True, "temperature": 5.0, "top_k": 1})
        self.assertEqual(self.run_once("--seed", 1), greedy)

    def test_quantised_on_load_it_answers_as_the_converted_file(self):
        out = self.model.parent / "quantised.gguf"
        done = dunlin("convert", self.model, out, "--type", "q8_0")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = dunlin("run", out, "Hi", "--max-tokens", 12, "--temperature", 0)
        self.assertEqual(self.run_once("--temperature", 0, "--quantize", "Q8_0"), done.stdout)
        shown = [json.loads(dunlin("inspect", *model, "--output", "json").stdout)
                 for model in ((self.model, "--quantize", "q8_0"), (out,))]
        self.assertEqual(shown[0]["memory"], shown[1]["memory"])
        self.assertIn("Q8_0", shown[0]["bytes_by_dtype"])
        done = dunlin("run", out, "Hi", "--quantize", "q4_0")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"--quantize", done.stderr)
        done = dunlin("run", self.model, "Hi", "--quantize", "q9")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"q4_k_m", done.stderr)

    def test_links_that_lead_nowhere_are_missing_files(self):
        for name in ("generation_config.json", "chat_template.jinja", "tokenizer_config.json"):
            (self.model / name).unlink(missing_ok=True)
            (self.model / name).symlink_to(self.model / "blobs" / "gone")
            self.assert_refused(name)
            (self.model / name).unlink()

    def test_a_folder_without_weights_says_what_to_do(self):
        (self.model / "model.safetensors").rename(self.model / "pytorch_model.bin")
        self.assert_refused("model.safetensors", "pytorch_model.bin")
        (self.model / "pytorch_model.bin").rename(self.model / "weights.gguf")
        self.assert_refused("weights.gguf")
        (self.model / "weights.gguf").rename(self.model / "other.safetensors")
        self.assert_refused("other.safetensors")

    def test_what_is_no_models_folder_says_what_to_do(self):
        for name in ("run", "plan", "inspect", "convert"):
            with self.subTest(name):
                rest = {"run": ["Hi"], "convert": [self.model.parent / "x.gguf"]}.get(name, [])
                done = dunlin(name, self.model / "model.safetensors", *rest)
                self.assertEqual(done.returncode, 1)
                self.assertIn(b"takes a folder" if name == "convert" else b"give the folder", done.stderr)
        (self.model / "config.json").unlink()
        for name in ("run", "plan", "inspect"):
            with self.subTest(name):
                done = dunlin(name, self.model, *(["Hi"] if name == "run" else []))
                self.assertEqual(done.returncode, 1)
                self.assertIn(b"has no config.json; a model's folder holds", done.stderr)

    def test_converted_to_gguf_it_gives_the_same_ids_and_answer(self):
        out = self.model.parent / "converted.gguf"
        done = dunlin("convert", self.model, out)
        self.assertEqual(done.returncode, 0, done.stderr)
        for text in ("Hé 12  ok\n\n x", "it's <|turn|>"):
            ids = [dunlin("tokenize", model, text, "--output", "json").stdout for model in (self.model, out)]
            self.assertEqual(ids[0], ids[1])
        greedy = self.run_once("--temperature", 0)
        done = dunlin("run", out, "Hi", "--max-tokens", 12, "--temperature", 0)
        self.assertEqual(done.stdout, greedy, done.stderr)

    def test_tokens_around_a_text_that_only_we_read_from_gguf_come_along(self):
        """As GLM-4's [gMASK]<sop>, none of them BOS."""
        around = tokenizer()
        names = ("[gMASK]", "<sop>")
        for i, name in enumerate(names):
            around["added_tokens"].append({**around["added_tokens"][0], "id": 257 + i, "content": name})
        around["post_processor"] = {"type": "Sequence", "processors": [
            {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
            {"type": "TemplateProcessing",
             "single": [*({"SpecialToken": {"id": name, "type_id": 0}} for name in names),
                        {"Sequence": {"id": "A", "type_id": 0}}],
             "pair": [], "special_tokens": {name: {"id": name, "ids": [257 + i], "tokens": [name]}
                                            for i, name in enumerate(names)}}]}
        self.write("tokenizer.json", around)
        out = self.model.parent / "around.gguf"
        done = dunlin("convert", self.model, out)
        self.assertEqual(done.returncode, 0, done.stderr)
        for model in (self.model, out):
            done = dunlin("tokenize", model, "Hi", "--add-special", "--output", "ids")
            self.assertEqual(done.stdout.split(), [b"257", b"258", b"72", b"105"], model)

    def test_a_tokenizer_that_gguf_has_no_name_for_is_refused(self):
        other = tokenizer()
        other["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": "x+"}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]}
        self.write("tokenizer.json", other)
        done = dunlin("convert", self.model, self.model.parent / "other.gguf")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"pre_tokenizer", done.stderr)
        self.assertFalse((self.model.parent / "other.gguf").exists())

    def test_ends_of_a_text_that_have_no_known_name_are_converted(self):
        config = json.loads((self.model / "config.json").read_text())
        self.write("config.json", {**config, "eos_token_id": 256})
        self.write("generation_config.json", {"eos_token_id": [256, 7, 9]})
        out = self.model.parent / "ends.gguf"
        done = dunlin("convert", self.model, out)
        self.assertEqual(done.returncode, 0, done.stderr)
        written = out.read_bytes()
        for key, token in ((b"eos", 256), (b"eot", 7), (b"eom", 9)):
            self.assertIn(b"tokenizer.ggml." + key + b"_token_id" + struct.pack("<II", 4, token), written)

    def test_an_added_token_behind_the_weights_is_left_out(self):
        greedy = self.run_once("--temperature", 0)
        vocabulary = tokenizer()
        vocabulary["added_tokens"].append({**vocabulary["added_tokens"][0], "id": 320, "content": "<image>"})
        self.write("tokenizer.json", vocabulary)
        self.assertEqual(self.run_once("--temperature", 0), greedy)
        out = self.model.parent / "added.gguf"
        self.assertEqual(dunlin("convert", self.model, out).returncode, 0)
        done = dunlin("run", out, "Hi", "--max-tokens", 12, "--temperature", 0)
        self.assertEqual(done.stdout, greedy)

    def test_convert_refuses_a_tokenizer_that_run_refuses_and_in_its_words(self):
        broken = {name: tokenizer() for name in ("merges", "rows", "type")}
        del broken["merges"]["model"]["merges"]
        broken["rows"]["model"]["vocab"]["beyond the weights"] = 400
        broken["type"]["model"]["type"] = "Nosuch"
        for name, file in broken.items():
            with self.subTest(name):
                self.write("tokenizer.json", file)
                out = self.model.parent / "broken.gguf"
                done = dunlin("convert", self.model, out)
                self.assertEqual(done.returncode, 1)
                self.assertFalse(out.exists())
                run = dunlin("run", self.model, "Hi")
                self.assertEqual(run.returncode, 1)
                self.assertIn(run.stderr.decode().strip(), done.stderr.decode())

    def test_inspect_shows_what_it_shows_of_a_file(self):
        out = self.model.parent / "converted.gguf"
        self.assertEqual(dunlin("convert", self.model, out).returncode, 0)
        shown = [json.loads(dunlin("inspect", model, "--output", "json").stdout) for model in (self.model, out)]
        self.assertEqual([facts["format"] for facts in shown], ["safetensors", "gguf"])
        for key in ("architecture", "chat_template", "parameters", "weight_bytes", "layers", "kv_heads",
                    "kv_bytes_per_token", "context_length", "memory"):
            self.assertEqual(shown[0][key], shown[1][key], key)

    def test_what_is_missing_or_wrong_is_named(self):
        self.write("tokenizer.json", {**tokenizer(), "normalizer": {"type": "Nosuch"}})
        self.assert_refused("tokenizer.json", "Nosuch")
        (self.model / "tokenizer.json").unlink()
        self.assert_refused("tokenizer.json")
        self.write("tokenizer.json", tokenizer())
        self.write("generation_config.json", {"top_p": 3})
        self.assert_refused("generation_config.json", "top_p")
        self.write("generation_config.json", {})
        self.write("config.json", {"architectures": ["NosuchForCausalLM"]})
        self.assert_refused("NosuchForCausalLM", "Qwen3ForCausalLM")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
