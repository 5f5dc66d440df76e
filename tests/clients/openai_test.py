"""The real `openai` Python client against `dunlin serve` with a real model.

usage: openai_test.py DUNLIN"""

import concurrent.futures
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from running_server import RunningServer, model_path  # noqa: E402

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
KEY = "sk-test"
# The first token leads by more than 0.7 here; other wordings are near-ties between "The" and "L'".
QUESTION = "Name the capital city of France."


def ask(client, model, text, **fields):
    return client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": text}], temperature=0, max_tokens=24, **fields)


def check_chat(client, model):
    answer = ask(client, model, QUESTION)
    text = answer.choices[0].message.content
    assert "Paris" in text, text
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    streamed, usage, chunks = "", None, 0
    for chunk in ask(client, model, QUESTION, stream=True,
                     stream_options={"include_usage": True}):
        chunks += 1
        usage = chunk.usage or usage
        if chunk.choices:
            streamed += chunk.choices[0].delta.content or ""
    assert streamed == text, (streamed, text)
    assert usage.completion_tokens == answer.usage.completion_tokens
    assert chunks >= 3, chunks
    with_logprobs = ask(client, model, "Hi", logprobs=True, top_logprobs=2)
    assert len(with_logprobs.choices[0].logprobs.content[0].top_logprobs) == 2


def check_completion(client, model):
    answer = client.completions.create(model=model, prompt=["One, two,", "A, B,"], max_tokens=4, temperature=0, n=1)
    assert [choice.index for choice in answer.choices] == [0, 1]
    parts = [chunk.choices[0].text for chunk in
             client.completions.create(model=model, prompt="One, two,", max_tokens=4, temperature=0, stream=True)]
    assert "".join(parts) == answer.choices[0].text


def check_errors(openai, client, model, url):
    for error, call in [
        (openai.BadRequestError, lambda: ask(client, model, "x", top_p=7)),
        (openai.BadRequestError, lambda: ask(client, model, "x", response_format={"type": "json_object"})),
        (openai.NotFoundError, lambda: ask(client, "no-such-model", "x")),
        (openai.AuthenticationError, lambda: openai.OpenAI(base_url=url, api_key="wrong").models.list()),
    ]:
        try:
            call()
        except error as caught:
            assert caught.body["message"], caught.body
        else:
            raise AssertionError(f"{error.__name__} was not raised")


def check_together(client, model):
    prompts = [f"Tell me about the number {i}." for i in range(8)]
    alone = [ask(client, model, prompt).choices[0].message.content for prompt in prompts]
    def stream(prompt):
        return "".join(chunk.choices[0].delta.content or "" for chunk in ask(client, model, prompt, stream=True))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        together = list(pool.map(stream, prompts))
    assert together == alone, [pair for pair in zip(together, alone) if pair[0] != pair[1]]


def main():
    path = model_path(MODEL)
    if path is None:
        print(f"SKIP: {MODEL} is not in the cache; run `dunlin pull smollm2-135m`")
        return 0
    import openai
    with RunningServer(sys.argv[1], path, "--api-key", KEY) as server:
        url = server.url + "/v1"
        with openai.OpenAI(base_url=url, api_key=KEY, max_retries=0, timeout=120) as client:
            model = client.models.list().data[0].id
            assert client.models.retrieve(model).id == model
            check_chat(client, model)
            check_completion(client, model)
            check_errors(openai, client, model, url)
            check_together(client, model)
    print(f"openai {openai.__version__}: every check passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
