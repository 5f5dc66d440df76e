// The chat page: wires store, API and view together.
import { firstModel, streamChat } from "./api.js";
import { ChatStore, DEFAULT_SETTINGS, loadSettings, saveSettings } from "./store.js";
import { LiveAnswer, renderChats, renderMessages } from "./view.js";

const $ = (id) => document.getElementById(id);
const store = new ChatStore();
let settings = loadSettings();
let model = "";
let running = null;  // the AbortController of the answer that is being written

function setRunning(controller) {
  running = controller;
  $("send").hidden = controller !== null;
  $("stop").hidden = controller === null;
}

function refresh() {
  renderMessages($("messages"), store.current.messages, { retry, edit, refresh });
  renderChats($("chats"), store, selectChat, deleteChat);
}

function selectChat(id) {
  running?.abort();
  store.select(id);
  document.body.classList.remove("menu-open");
  refresh();
}

function deleteChat(chat) {
  if (chat.messages.length > 0 && !confirm(`Delete "${chat.title}"?`)) return;
  if (chat.id === store.current.id) running?.abort();
  store.remove(chat.id);
  refresh();
}

function requestMessages(chat) {
  const messages = chat.messages.filter((m) => !m.error || m.content).map(({ role, content }) => ({ role, content }));
  if (settings.system.trim()) messages.unshift({ role: "system", content: settings.system });
  return messages;
}

// Asks for the answer to the chat as it stands and writes it as it comes.
async function answer() {
  const chat = store.current;
  const messages = requestMessages(chat);
  const message = { role: "assistant", content: "" };
  const controller = new AbortController();
  const live = new LiveAnswer($("messages"));
  const start = performance.now();
  let first = null, tokens = 0, finish = "stopped";
  setRunning(controller);
  try {
    for await (const part of streamChat({ model, messages, settings, signal: controller.signal })) {
      if (part.text) {
        first ??= performance.now();
        tokens += 1;
        message.content += part.text;
        live.update(message);
      } else {
        finish = part.finish;
        tokens = part.usage?.completion_tokens ?? tokens;
      }
    }
  } catch (error) {
    if (error.name !== "AbortError") message.error = error.message;
  }
  const seconds = first === null ? 0 : (performance.now() - first) / 1000;
  if (first !== null) message.stats = { tokens, finish, firstTokenMs: first - start, tokensPerSecond: seconds > 0.05 ? (tokens - 1) / seconds : 0 };
  chat.messages.push(message);
  setRunning(null);
  const saved = store.save();
  refresh();
  if (!saved) $("model").textContent = `${model} · this browser has no room left: new messages are not kept`;
}

function send(text) {
  if (running || !text.trim()) return;
  store.current.messages.push({ role: "user", content: text });
  store.save();
  refresh();
  answer();
}

function retry() {
  if (running) return;
  store.current.messages.pop();
  refresh();
  answer();
}

function edit(message, text) {
  if (running || !text.trim()) return;
  const messages = store.current.messages;
  messages.length = messages.indexOf(message);
  send(text);
}

function showSettings() {
  for (const name of Object.keys(DEFAULT_SETTINGS)) $(name).value = settings[name] ?? "";
}

function readSettings() {
  for (const name of Object.keys(DEFAULT_SETTINGS)) {
    const input = $(name);
    if (name === "system") settings.system = input.value;
    else if (input.value !== "" && input.checkValidity()) settings[name] = Number(input.value);
    else settings[name] = DEFAULT_SETTINGS[name];
  }
  saveSettings(settings);
}

function fitInput() {
  const input = $("input");
  input.style.height = "auto";
  input.style.height = `${input.scrollHeight + 2}px`;
}

function wire() {
  $("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = $("input").value;
    if (running || !text.trim()) return;
    $("input").value = "";
    fitInput();
    send(text);
  });
  $("input").addEventListener("input", fitInput);
  $("input").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      $("composer").requestSubmit();
    }
  });
  $("stop").addEventListener("click", () => running?.abort());
  $("new-chat").addEventListener("click", () => {
    running?.abort();
    store.create();
    document.body.classList.remove("menu-open");
    refresh();
    $("input").focus();
  });
  $("menu").addEventListener("click", () => {
    const open = document.body.classList.toggle("menu-open");
    $("menu").setAttribute("aria-expanded", String(open));
  });
  document.querySelector("main").addEventListener("click", (event) => {
    if (!event.target.closest("#menu")) document.body.classList.remove("menu-open");
  });
  $("settings-button").addEventListener("click", () => {
    $("settings").hidden = !$("settings").hidden;
    $("settings-button").setAttribute("aria-expanded", String(!$("settings").hidden));
  });
  $("settings").addEventListener("input", readSettings);
  $("settings").addEventListener("submit", (event) => event.preventDefault());
  $("defaults").addEventListener("click", () => {
    settings = { ...DEFAULT_SETTINGS };
    showSettings();
    saveSettings(settings);
  });
}

async function start() {
  wire();
  showSettings();
  refresh();
  try {
    model = await firstModel();
    $("model").textContent = model;
  } catch (error) {
    $("model").textContent = `no model: ${error.message}`;
  }
}

start();
