"""The real `openai` Python client against `dunlin serve` with a tiny embedding model.

usage: openai_embeddings_test.py DUNLIN TESTS"""

import pathlib
import sys
import tarfile
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from running_server import RunningServer  # noqa: E402


def check(openai, client):
    model = client.models.list().data[0].id
    texts = ["The cat sat on the mat.", "Running dogs, 42 of them!"]
    # The client asks for base64 unless told otherwise, and decodes it.
    answer = client.embeddings.create(model=model, input=texts)
    assert [entry.index for entry in answer.data] == [0, 1]
    assert all(len(entry.embedding) == 48 for entry in answer.data)
    assert answer.usage.prompt_tokens == answer.usage.total_tokens > 0
    plain = client.embeddings.create(model=model, input=texts, encoding_format="float")
    for a, b in zip(answer.data, plain.data, strict=True):
        assert max(abs(x - y) for x, y in zip(a.embedding, b.embedding, strict=True)) < 1e-6
    base64 = client.embeddings.create(model=model, input=texts[0], encoding_format="base64")
    assert isinstance(base64.data[0].embedding, str) and len(base64.data[0].embedding) == 48 * 4 * 4 // 3
    short = client.embeddings.create(model=model, input=texts[0], dimensions=8).data[0].embedding
    assert len(short) == 8 and abs(sum(x * x for x in short) - 1) < 1e-5
    ids = client.embeddings.create(model=model, input=[[2, 11, 3], [2, 12, 3]])
    assert ids.usage.prompt_tokens == 6
    try:
        client.embeddings.create(model=model, input=["fine", ""])
    except openai.BadRequestError as error:
        assert error.body["param"] == "input[1]", error.body
    else:
        raise AssertionError("an empty input was taken")


def main():
    import openai
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(pathlib.Path(sys.argv[2]) / "golden" / "embeddings.tar.xz") as archive:
            archive.extractall(scratch)
        with RunningServer(sys.argv[1], f"{scratch}/embeddings/tiny-bert") as server:
            with openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=60) as client:
                check(openai, client)
    print(f"openai {openai.__version__}: every check passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
