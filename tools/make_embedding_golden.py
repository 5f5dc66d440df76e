#!/usr/bin/env python3
"""Writes what tests/golden/embeddings.tar.xz holds: a tiny random BERT as a folder of sentence-transformers with the
hidden states that transformers gives for it in float32, and those of the tiny Llama of tests/golden/tiny.tar.xz.
Needs torch, transformers and tokenizers.

usage: make_embedding_golden.py TINY_LLAMA_FOLDER OUT_FOLDER"""

import json
import pathlib
import string
import sys

import tokenizers
import torch
import transformers

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = "the a cat dog sat sit on in mat house was is are and or not run red blue big small day night sea sun".split()
PIECES = "ing ed s er est ly ness un re able ful less".split()
TEXTS = [
    "The cat sat on the mat.",
    "Running dogs, 42 of them!",
    "naïve café Ärger",
    "日本 is unknown",
    "x",
    " ".join(["a big red dog was not running on the small blue sea at night, and"] * 16),
]


def make_tokenizer(folder):
    characters = string.ascii_lowercase + string.digits + string.punctuation
    texts = SPECIAL + list(characters) + ["##" + c for c in string.ascii_lowercase + string.digits]
    texts += [word for word in WORDS if word not in texts] + ["##" + piece for piece in PIECES if "##" + piece not in texts]
    vocab = {text: i for i, text in enumerate(texts)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = tokenizers.decoders.WordPiece()
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", vocab["[CLS]"]), ("[SEP]", vocab["[SEP]"])])
    tokenizer.save(str(folder / "tokenizer.json"))
    write(folder / "tokenizer_config.json", {"do_lower_case": True, "unk_token": "[UNK]", "sep_token": "[SEP]",
                                             "pad_token": "[PAD]", "cls_token": "[CLS]", "mask_token": "[MASK]",
                                             "tokenizer_class": "BertTokenizer"})
    return tokenizer


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def randomise(model):
    torch.manual_seed(7)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.copy_(torch.randn_like(parameter) * (0.9 / parameter.shape[-1] ** 0.5))
            elif "LayerNorm.weight" in name:
                parameter.copy_(torch.rand_like(parameter) * 0.5 + 0.75)
            else:
                parameter.copy_(torch.randn_like(parameter) * 0.1)


def rounded(row):
    return [round(float(x), 6) for x in row]


def rows_of(hidden, positions):
    return {str(at): rounded(hidden[at]) for at in positions}


def make_bert(folder):
    folder.mkdir(parents=True)
    tokenizer = make_tokenizer(folder)
    config = transformers.BertConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=48, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=100, max_position_embeddings=310, type_vocab_size=2, layer_norm_eps=1e-12, hidden_act="gelu")
    model = transformers.BertModel(config, add_pooling_layer=True).float().eval()
    randomise(model)
    model.save_pretrained(folder, safe_serialization=True)
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    write(folder / "modules.json", [{"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
                                    for i, (path, kind) in enumerate(kinds)])
    write(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 48, "pooling_mode_cls_token": False,
                                                 "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False})
    reference = []
    for text in TEXTS:
        ids = tokenizer.encode(text).ids
        with torch.no_grad():
            hidden = model(torch.tensor([ids])).last_hidden_state[0].double()
        mean = hidden.mean(0)
        positions = sorted({0, 1, len(ids) // 2, len(ids) - 1})
        reference.append({"text": text, "ids": ids, "hidden": rows_of(hidden, positions),
                          "embedding": rounded(mean / mean.norm())})
        print(len(ids), "tokens:", text[:50])
    write(folder / "reference.json", reference)


def make_llama(folder, out):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").float().eval()
    ids = json.loads((folder / "reference.json").read_text())["input_ids"]
    with torch.no_grad():
        hidden = model.model(torch.tensor([ids])).last_hidden_state[0].double()
    write(out, {"ids": ids, "hidden": rows_of(hidden, [0, 1, 47, 95]), "mean": rounded(hidden.mean(0))})


if __name__ == "__main__":
    out = pathlib.Path(sys.argv[2])
    make_bert(out / "tiny-bert")
    make_llama(pathlib.Path(sys.argv[1]), out / "llama.json")
