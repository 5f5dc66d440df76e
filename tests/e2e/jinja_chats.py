"""Conversations that chat templates are tried with: (name, variables)."""

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Weather of a city, e.g. \"São Paulo\".",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "The city"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"}},
        "required": ["city"]}}}
NOTHING = {"type": "function", "function": {
    "name": "ping", "description": "", "parameters": {"type": "object", "properties": {}}}}

SYSTEM = {"role": "system", "content": "You are terse."}
USER = {"role": "user", "content": "Hello <|im_end|> & \"you\" ☃\n"}
ANSWER = {"role": "assistant", "content": " Hi there! "}
AGAIN = {"role": "user", "content": "And now?"}
CALL = {"role": "assistant", "content": None, "tool_calls": [{
    "id": "call00001", "type": "function",
    "function": {"name": "get_weather", "arguments": {"city": "Köln", "unit": "celsius"}}}]}
CALL_TEXT = {"role": "assistant", "content": "", "tool_calls": [{
    "id": "call00002", "type": "function",
    "function": {"name": "get_weather", "arguments": "{\"city\": \"Köln\"}"}}]}
RESULT = {"role": "tool", "tool_call_id": "call00001", "name": "get_weather", "content": "{\"temp\": 7.5}"}
THOUGHT = {"role": "assistant", "content": "<think>\nlet me see\n</think>\n\n42"}
PARTS = {"role": "user", "content": [{"type": "text", "text": "Look:"}, {"type": "image"},
                                     {"type": "text", "text": "what is it?"}]}
DOCUMENTS = [{"title": "Dunlins", "text": "Small waders."}, {"title": "Knots", "text": "Larger ones."}]


def chats():
    tokens = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}

    def chat(name, messages, generate=True, **more):
        return name, {"messages": messages, "add_generation_prompt": generate, **tokens, **more}

    return [
        chat("one question", [USER]),
        chat("with system", [SYSTEM, USER]),
        chat("three turns", [SYSTEM, USER, ANSWER, AGAIN]),
        chat("no generation", [USER, ANSWER], generate=False),
        chat("tools offered", [SYSTEM, AGAIN], tools=[WEATHER, NOTHING]),
        chat("tools without system", [AGAIN], tools=[WEATHER]),
        chat("tool called", [USER, CALL, RESULT, AGAIN], tools=[WEATHER]),
        chat("tool called twice", [USER, CALL, RESULT, RESULT, ANSWER, AGAIN, CALL, RESULT], tools=[WEATHER]),
        chat("arguments as text", [USER, CALL_TEXT, RESULT], tools=[WEATHER]),
        chat("thoughts", [USER, THOUGHT, AGAIN], enable_thinking=True),
        chat("thoughts off", [USER, THOUGHT, AGAIN], enable_thinking=False),
        chat("content parts", [SYSTEM, PARTS]),
        chat("documents", [SYSTEM, AGAIN], documents=DOCUMENTS),
        chat("two users in a row", [USER, AGAIN]),
        chat("starts with assistant", [ANSWER, USER]),
        chat("unknown role", [{"role": "narrator", "content": "Once"}, USER]),
        chat("empty", []),
        chat("continues a message", [USER, {"role": "assistant", "content": "It is", "prefix": True}], generate=False),
        chat("numbers", [{"role": "user", "content": "1", "n": 1.0}], date_string="1 Jan 2025", custom_tools=None),
    ]
