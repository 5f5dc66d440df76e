"""The tiny model of a test class."""

import pathlib
import subprocess
import tempfile


def tiny_model(test_class, program, *options):
    """The path of a tiny model in a folder of its own, which goes with the class."""
    folder = tempfile.TemporaryDirectory()
    test_class.addClassCleanup(folder.cleanup)
    path = pathlib.Path(folder.name) / "tiny.gguf"
    subprocess.run([program, str(path), *options], check=True, stdout=subprocess.DEVNULL)
    return str(path)
