// Conversations and settings, kept in this browser's localStorage.

const CHATS_KEY = "dunlin.chats";
const SETTINGS_KEY = "dunlin.settings";

// What a field is while the user hasn't touched it; null is left to the server.
export const DEFAULT_SETTINGS = Object.freeze({
  system: "", temperature: 0.7, top_p: 0.95, top_k: 0, min_p: 0, repetition_penalty: 1,
  max_tokens: null, seed: null,
});

function read(key, fallback) {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? fallback;
  } catch {
    return fallback;
  }
}

function write(key, value) {
  try {
    localStorage.setItem(key, JSON.stringify(value));
    return true;
  } catch {
    return false;  // full or forbidden: the page works on, without memory
  }
}

export function loadSettings() {
  return { ...DEFAULT_SETTINGS, ...read(SETTINGS_KEY, {}) };
}

export function saveSettings(settings) {
  write(SETTINGS_KEY, settings);
}

// A chat is {id, title, messages: [{role, content, stats?, error?}]}; the newest comes first.
export class ChatStore {
  constructor() {
    const saved = read(CHATS_KEY, []);
    this.chats = Array.isArray(saved) ? saved.filter((c) => c && Array.isArray(c.messages)) : [];
    this.current = this.chats[0] ?? this.create();
  }

  create() {
    // An untouched new chat is the new chat.
    const empty = this.chats.find((chat) => chat.messages.length === 0);
    this.current = empty ?? { id: crypto.randomUUID?.() ?? String(Date.now() + Math.random()), title: "New chat", messages: [] };
    if (!empty) this.chats.unshift(this.current);
    return this.current;
  }

  select(id) {
    this.current = this.chats.find((chat) => chat.id === id) ?? this.current;
  }

  remove(id) {
    this.chats = this.chats.filter((chat) => chat.id !== id);
    if (this.current.id === id) this.current = this.chats[0] ?? this.create();
    this.save();
  }

  save() {
    for (const chat of this.chats) {
      const first = chat.messages.find((message) => message.role === "user");
      if (first) chat.title = first.content.trim().slice(0, 60) || "New chat";
    }
    return write(CHATS_KEY, this.chats.filter((chat) => chat.messages.length > 0));
  }
}
