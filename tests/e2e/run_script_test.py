"""./run and tools/setup.sh with stand-ins for Debian's package tools, CMake and the program.

Usage: run_script_test.py PATH_TO_DUNLIN REPOSITORY (the program is not used: ./run gets a stand-in)"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.argv.pop(1)
REPOSITORY = pathlib.Path(sys.argv.pop(1))

# All that a script may take for granted on the smallest Debian.
TOOLS = ("awk bash cat chmod cmp comm df dirname env flock grep mkdir mktemp nproc readlink rm sort tail touch "
         "wc").split()

STANDINS = {
    "id": "echo 1000",
    "dpkg": "",
    "dpkg-query": 'awk \'$1 == "build" {print "installed " $2}\' tools/packages.txt | grep -v "${MISSING:-none}"',
    "sudo": 'if [ "$1" = -v ]; then exit "${SUDO_STATUS:-0}"; fi; echo "sudo $*" >>"$TRACE"; exec "$@"',
    "apt-get": """echo "apt-get $*" >>"$TRACE"
[[ $* = *install* ]] || exit 0
echo "dlstatus:1:12.0000:Retrieving file 1 of 3"
echo "pmstatus:libx:amd64:57.5000:Unpacking libx"
[ -z "${APT_FAILS:-}" ] || { echo "E: Unable to locate package"; exit 100; }""",
    "cmake": """echo "cmake $*" >>"$TRACE"
if [ "$1" = --fresh ]; then
  mkdir -p "$5"; touch "$5/build.ninja"; echo "CMAKE_HOME_DIRECTORY:INTERNAL=$3" >"$5/CMakeCache.txt"
else
  echo "[1 of 2  50%] one.cc"
  [ -z "${BUILD_FAILS:-}" ] || { echo "one.cc: error: no"; exit 1; }
  printf '#!/usr/bin/env bash\\necho "model=$DUNLIN_MODEL"; printf "<%%s>" "$@"\\n' >"$2/dunlin"
  chmod +x "$2/dunlin"
fi""",
}


class RunScript(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        top = pathlib.Path(self.folder.name).resolve()
        self.clone, self.bin, self.trace = top / "a clone", top / "bin", top / "trace"
        (self.clone / "tools").mkdir(parents=True)
        shutil.copy(REPOSITORY / "run", self.clone)
        for name in ("steps.sh", "setup.sh", "packages.txt"):
            shutil.copy(REPOSITORY / "tools" / name, self.clone / "tools")
        self.bin.mkdir()
        self.trace.touch()
        for name in TOOLS:
            (self.bin / name).symlink_to(shutil.which(name))
        for name, body in STANDINS.items():
            (self.bin / name).write_text(f"#!/usr/bin/env bash\n{body}\n")
            (self.bin / name).chmod(0o755)

    def run_script(self, *args, cwd=None, **env):
        env = {"PATH": str(self.bin), "TRACE": str(self.trace)} | env
        return subprocess.run([self.clone / "run", *args], cwd=cwd or self.clone, env=env, capture_output=True,
                              text=True, timeout=60)

    def assert_runs(self, args, *expected, **env):
        result = self.run_script(*args, **env)
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual(result.stdout.splitlines()[1], "".join(f"<{word}>" for word in expected))
        return result

    def assert_refused(self, result, *words):
        self.assertEqual(result.returncode, 1, result)
        for word in words:
            self.assertIn(word, result.stderr)

    def test_a_question_is_asked_and_anything_else_goes_to_the_program(self):
        self.assert_runs([], "serve")
        question = "Why is the sky blue?"
        self.assert_runs([question], "run", "smollm2-135m", question)
        self.assert_runs(["Hello"], "run", "smollm2-135m", "Hello")
        self.assert_runs(["a/b " * 2000], "run", "smollm2-135m", "a/b " * 2000)
        self.assert_runs(["list"], "list")
        self.assert_runs(["--version"], "--version")
        self.assert_runs(["inspect", "a b.gguf"], "inspect", "a b.gguf")
        served = self.assert_runs(["serve", "--port", "9000"], "serve", "--port", "9000")
        self.assertIn("model=smollm2-135m\n", served.stdout)
        self.assertIn("model=mine.gguf\n", self.assert_runs([], "serve", DUNLIN_MODEL="mine.gguf").stdout)

    def test_builds_once_and_tells_the_progress_and_how_to_install(self):
        first = self.run_script("list")
        self.assertIn("building release: 50% (1 of 2)\n", first.stderr)
        self.assertIn("cmake --install", first.stderr)
        self.assertEqual(self.run_script("list").stderr, "building release: 50% (1 of 2)\n")
        self.assertEqual(self.trace.read_text().count("--fresh"), 1)

    def test_stays_in_the_folder_it_was_called_from_and_may_be_a_link(self):
        elsewhere = pathlib.Path(self.folder.name) / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "Model").touch()
        link = elsewhere / "link"
        link.symlink_to(self.clone / "run")
        done = subprocess.run([link, "Model"], cwd=elsewhere, env={"PATH": str(self.bin), "TRACE": str(self.trace)},
                              capture_output=True, text=True, timeout=60)
        self.assertIn("<Model>", done.stdout, done)
        self.assertNotIn("<run>", done.stdout, "a file is no question")

    def test_a_moved_clone_is_configured_anew(self):
        self.run_script("list")
        self.clone = self.clone.rename(self.clone.with_name("moved"))
        self.assertEqual(self.run_script("list").returncode, 0)
        self.assertEqual(self.trace.read_text().count("--fresh"), 2)

    def test_a_failed_build_shows_why_and_is_gone_on_with(self):
        self.assert_refused(self.run_script("list", BUILD_FAILS="1"), "one.cc: error: no", "./run again", "run.log")
        self.assert_runs(["list"], "list")
        self.assertEqual(self.trace.read_text().count("--fresh"), 1)

    def test_says_how_much_room_the_build_needs(self):
        (self.bin / "df").unlink()
        (self.bin / "df").write_text("#!/usr/bin/env bash\nprintf 'head\\ntmpfs 99 1 98 1%% /\\n'\n")
        (self.bin / "df").chmod(0o755)
        self.assert_refused(self.run_script(), "only 98 MiB free")
        self.assertEqual(self.trace.read_text(), "")

    def test_only_the_installation_is_elevated_and_only_the_missing_is_installed(self):
        result = self.assert_runs(["list"], "list", MISSING="libhwy-dev")
        self.assertIn("setup: installing: 57% (Unpacking libx)\n", result.stderr)
        traced = self.trace.read_text().splitlines()
        installs = [line for line in traced if line.startswith("apt-get") and "install" in line]
        self.assertEqual(len(installs), 1)
        self.assertTrue(installs[0].endswith("install -y --no-install-recommends libhwy-dev"), installs)
        for line in traced:
            if line.startswith("sudo"):
                self.assertTrue(line.startswith("sudo env DEBIAN_FRONTEND=noninteractive "), line)
        self.trace.write_text("")
        self.run_script("list")
        self.assertNotIn("sudo", self.trace.read_text())

    def test_a_failed_installation_says_why_and_what_to_do(self):
        result = self.run_script(MISSING="libhwy-dev", APT_FAILS="1")
        self.assert_refused(result, "E: Unable to locate package", "Check the network")
        self.assertNotIn("pmstatus", result.stderr)

    def test_without_root_it_says_what_root_should_run(self):
        by_hand = "apt-get install --no-install-recommends libhwy-dev"
        self.assert_refused(self.run_script(MISSING="libhwy-dev", SUDO_STATUS="1"), by_hand, "sudo refused")
        (self.bin / "sudo").unlink()
        self.assert_refused(self.run_script(MISSING="libhwy-dev"), by_hand, "no sudo")
        self.assertNotIn("apt-get", self.trace.read_text())


if __name__ == "__main__":
    unittest.main()
