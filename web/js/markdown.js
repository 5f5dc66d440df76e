// Markdown to safe DOM nodes: marked parses, DOMPurify strips everything that could run, highlight.js
// colours code. A model's text is never trusted.
import { marked } from "/vendor/marked.js";
import DOMPurify from "/vendor/purify.js";

const hljs = globalThis.hljs;

marked.setOptions({ gfm: true, breaks: false, headerIds: false, mangle: false });

const PURIFY = {
  USE_PROFILES: { html: true },
  FORBID_TAGS: ["style", "form", "input", "textarea", "select", "button", "img", "video", "audio", "iframe"],
  FORBID_ATTR: ["style", "id", "name"],
  RETURN_DOM_FRAGMENT: true,
};

// Links of an answer leave the page in a new tab and tell nothing about it.
DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") {
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noopener noreferrer nofollow");
  }
});

export function renderMarkdown(text) {
  return DOMPurify.sanitize(marked.parse(text), PURIFY);
}

// Colours and copy buttons; called once an answer is whole.
export function decorateCode(root) {
  for (const code of root.querySelectorAll("pre > code")) {
    if (code.textContent.length < 20000) {
      const language = [...code.classList].map((c) => c.replace("language-", "")).find((c) => hljs?.getLanguage(c));
      if (language) {
        const coloured = hljs.highlight(language, code.textContent, true).value;
        code.replaceChildren(DOMPurify.sanitize(coloured, { ALLOWED_TAGS: ["span"], ALLOWED_ATTR: ["class"], RETURN_DOM_FRAGMENT: true }));
      }
    }
    const copy = document.createElement("button");
    copy.className = "copy-code";
    copy.type = "button";
    copy.textContent = "Copy";
    copy.addEventListener("click", () => copyText(code.textContent, copy));
    code.parentElement.append(copy);
  }
}

export async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Plain HTTP away from localhost has no clipboard API.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  const label = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = label; }, 1200);
}
