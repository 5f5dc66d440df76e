#!/usr/bin/env python3
"""Templates through `dunlin debug template` against Debian's python3-jinja2, in the environment
that transformers renders chat templates in. Usage: jinja_test.py DUNLIN [MODEL.gguf ...]

What the reference renders must come out equal to the byte; what it refuses must be refused, with
the template's own words where it says raise_exception."""

import datetime
import itertools
import json
import pathlib
import struct
import subprocess
import sys

try:
    import jinja2
    import jinja2.ext
    import jinja2.nodes
    import jinja2.sandbox
except ImportError:
    print("FAILED: python3-jinja2 is not installed (apt-get install python3-jinja2)")
    sys.exit(1)

import jinja_chats
import jinja_expressions
import jinja_statements

NOW = 1764424800
TEMPLATES = pathlib.Path(__file__).resolve().parent.parent / "cases" / "chat_templates"


class Generation(jinja2.ext.Extension):
    """{% generation %}: the body, in a scope of its own."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment(kind):
    env = kind(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: datetime.datetime.fromtimestamp(NOW).strftime(form)
    return env


def expected(env, template, variables):
    try:
        return env.from_string(template).render(**json.loads(json.dumps(variables))), None
    except RecursionError:
        raise
    except Exception as error:  # whatever Python raises is a refusal
        return None, error


def gguf_template(path):
    """The chat template in a GGUF file's metadata, or None."""
    sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
    with open(path, "rb") as file:
        def number(form):
            return struct.unpack("<" + form, file.read(struct.calcsize(form)))[0]

        def text():
            return file.read(number("Q"))

        def value(kind):
            if kind == 8:
                return text()
            if kind == 9:
                inner, count = number("I"), number("Q")
                if inner in sizes:
                    return file.read(sizes[inner] * count)
                return [value(inner) for _ in range(count)]
            return file.read(sizes[kind])

        number("I"), number("I"), number("Q")
        for _ in range(number("Q")):
            key, kind = text(), number("I")
            found = value(kind)
            if key == b"tokenizer.chat_template":
                return found.decode()
    return None


def all_pairs(models):
    immutable = environment(jinja2.sandbox.ImmutableSandboxedEnvironment)
    mutable = environment(jinja2.sandbox.SandboxedEnvironment)
    if not models:
        for expression in jinja_expressions.EXPRESSIONS.splitlines():
            yield immutable, expression, "{{ " + expression + " }}", jinja_expressions.VARS
        for expression in jinja_expressions.ERRORS.splitlines():
            yield immutable, expression, "{{ " + expression + " }}", jinja_expressions.VARS
        for name, template, variables in jinja_statements.STATEMENTS:
            yield immutable, name, template, variables
        for name, template, variables in jinja_statements.MUTATIONS:
            yield mutable, name, template, variables
    sources = [(path.stem, path.read_text()) for path in sorted(TEMPLATES.glob("*.jinja"))]
    if models:
        sources = [(pathlib.Path(path).name, gguf_template(path)) for path in models]
    for (name, template), (chat, variables) in itertools.product(sources, jinja_chats.chats()):
        if template is not None:
            yield immutable, f"{name} / {chat}", template, variables


def main():
    dunlin, models = sys.argv[1], sys.argv[2:]
    present = [path for path in models if pathlib.Path(path).expanduser().exists()]
    if models and len(present) < len(models):
        print("SKIP: the real models are not in the cache (./run fetches the first)")
        return 0
    pairs = list(all_pairs([str(pathlib.Path(path).expanduser()) for path in present]))
    lines = [json.dumps({"id": i, "template": template, "vars": variables, "now": NOW})
             for i, (_, _, template, variables) in enumerate(pairs)]
    run = subprocess.run([dunlin, "debug", "template"], input="\n".join(lines) + "\n", text=True,
                         capture_output=True, timeout=300)
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    failures = [] if run.returncode == 0 else [f"exit status {run.returncode}: {run.stderr}"]
    if len(answers) != len(pairs):
        failures.append(f"{len(answers)} answers to {len(pairs)} requests")
    refused = 0
    for (env, name, template, variables), answer in zip(pairs, answers):
        text, error = expected(env, template, variables)
        refused += error is not None
        if error is None and answer.get("output") != text:
            failures.append(f"{name}\n  wanted {text!r}\n  got    {answer.get('output', answer.get('error'))!r}")
        elif error is not None and answer["ok"]:
            failures.append(f"{name}\n  wanted an error ({error!r})\n  got    {answer['output']!r}")
        elif type(error) is jinja2.exceptions.TemplateError and answer["error"] != str(error):
            failures.append(f"{name}\n  wanted the error {str(error)!r}\n  got    {answer['error']!r}")
    print("\n".join(failures))
    print(f"{len(pairs)} pairs of template and input ({refused} refused by both), {len(failures)} failures; "
          f"jinja2 {jinja2.__version__}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
