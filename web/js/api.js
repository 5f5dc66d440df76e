// The public HTTP API, nothing else: what the page can do, any client can.

export async function firstModel() {
  const answer = await fetch("/v1/models");
  if (!answer.ok) throw new Error(await errorText(answer));
  return (await answer.json()).data[0].id;
}

async function errorText(answer) {
  const text = await answer.text();
  try {
    return JSON.parse(text).error.message;
  } catch {
    return text || `the server answers ${answer.status}`;
  }
}

// The data of each server-sent event in a response's body.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    buffer += value;
    const lines = buffer.split("\n");
    buffer = lines.pop();
    for (const line of lines) {
      if (line.startsWith("data:")) yield line.slice(5).trim();
    }
  }
}

// Streams one answer. Yields {text} pieces and at last {finish, usage}; throws with the server's
// words. `signal` stops it: the server sees the connection close and frees what it held.
export async function* streamChat({ model, messages, settings, signal }) {
  const request = { model, messages, stream: true, stream_options: { include_usage: true } };
  for (const name of ["temperature", "top_p", "top_k", "min_p", "repetition_penalty", "max_tokens", "seed"]) {
    if (settings[name] !== null && settings[name] !== undefined) request[name] = settings[name];
  }
  const answer = await fetch("/v1/chat/completions", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(request), signal,
  });
  if (!answer.ok) throw new Error(await errorText(answer));
  let finish = null, usage = null;
  for await (const data of events(answer.body)) {
    if (data === "[DONE]") break;
    const chunk = JSON.parse(data);
    if (chunk.error) throw new Error(chunk.error.message);
    usage = chunk.usage ?? usage;
    const choice = chunk.choices?.[0];
    finish = choice?.finish_reason ?? finish;
    if (choice?.delta?.content) yield { text: choice.delta.content };
  }
  if (finish === null) throw new Error("the connection ended before the answer did");
  yield { finish, usage };
}
