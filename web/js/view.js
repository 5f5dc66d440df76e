// From messages to the DOM. Knows nothing of the server or of storage.
import { copyText, decorateCode, renderMarkdown } from "./markdown.js";

function element(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function toolButton(label, onClick) {
  const button = element("button", "", label);
  button.type = "button";
  button.addEventListener("click", () => onClick(button));
  return button;
}

export function statsText(stats) {
  if (!stats) return "";
  const parts = [];
  if (stats.tokens) parts.push(`${stats.tokens} tokens`);
  if (stats.tokensPerSecond) parts.push(`${stats.tokensPerSecond.toFixed(1)} tokens/s`);
  if (stats.firstTokenMs !== undefined) parts.push(`first token after ${Math.round(stats.firstTokenMs)} ms`);
  if (stats.finish === "length") parts.push("cut at the token limit");
  if (stats.finish === "stopped") parts.push("stopped");
  return parts.join(" · ");
}

function fillBody(body, message) {
  if (message.role === "user") body.textContent = message.content;
  else body.replaceChildren(renderMarkdown(message.content));
}

// One message with its buttons. `actions`: {retry(), edit(text)}; absent while an answer runs.
function messageNode(message, isLastAnswer, actions) {
  const node = element("article", `message ${message.role}`);
  const body = element("div", "body");
  fillBody(body, message);
  if (message.role !== "user") decorateCode(body);
  const tools = element("div", "tools");
  tools.append(toolButton("Copy", (button) => copyText(message.content, button)));
  if (message.role === "user") tools.append(toolButton("Edit", () => startEdit(node, message, actions)));
  if (isLastAnswer) tools.append(toolButton("Retry", () => actions.retry()));
  if (message.stats) tools.append(element("span", "stats", statsText(message.stats)));
  node.append(body);
  if (message.error) node.append(element("p", "error", message.error));
  node.append(tools);
  return node;
}

function startEdit(node, message, actions) {
  const area = element("textarea", "edit-area");
  area.value = message.content;
  const tools = element("div", "tools");
  tools.append(toolButton("Send", () => actions.edit(message, area.value)), toolButton("Cancel", () => actions.refresh()));
  node.replaceChildren(area, tools);
  area.focus();
}

export function renderMessages(root, messages, actions) {
  if (messages.length === 0) {
    root.replaceChildren(element("p", "empty", "Ask something. Nothing leaves this server."));
    return;
  }
  root.replaceChildren(...messages.map((message, i) =>
    messageNode(message, i === messages.length - 1 && message.role === "assistant", actions)));
  root.scrollTop = root.scrollHeight;
}

export function renderChats(root, store, onSelect, onDelete) {
  root.replaceChildren(...store.chats.map((chat) => {
    const item = element("li", chat.id === store.current.id ? "current" : "");
    const title = toolButton(chat.title, () => onSelect(chat.id));
    title.className = "title";
    const remove = toolButton("✕", () => onDelete(chat));
    remove.className = "delete";
    remove.setAttribute("aria-label", `Delete ${chat.title}`);
    item.append(title, remove);
    return item;
  }));
}

// The answer that is being written. Redraws at most once a frame, and follows the end only while
// the reader is there.
export class LiveAnswer {
  constructor(root) {
    this.root = root;
    this.node = element("article", "message assistant");
    this.body = element("div", "body waiting");
    this.node.append(this.body);
    root.append(this.node);
    root.scrollTop = root.scrollHeight;
    this.pending = false;
  }

  update(message) {
    if (this.pending) return;
    this.pending = true;
    // A hidden tab gets no frames; a timer works everywhere.
    setTimeout(() => {
      this.pending = false;
      const follow = this.root.scrollHeight - this.root.scrollTop - this.root.clientHeight < 80;
      fillBody(this.body, message);
      if (follow) this.root.scrollTop = this.root.scrollHeight;
    }, 16);
  }
}
