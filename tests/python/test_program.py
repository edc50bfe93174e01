"""The program that the package installs: its command line, answers and exit statuses are those of the program that CMake builds."""
import os
import re
import subprocess
import sys
import sysconfig
import unittest

from support import PROGRAM

LINES = [
    ("--version",),
    ("forecast", "gpt2_large", "--gpu", "H100", "--format", "json"),
    ("forecast", "gpt2_large", "--gpu", "H100"),
    ("models", "--format", "csv"),
    ("forecast", "gpt2_large", "--gpu", "no such GPU"),
    ("forecast", "gpt2_large", "--no-such-option"),
    ("forecast", "no \u00fcbung", "--gpu", "H100"),
    ("no-such-command",),
    (),
]


class Program(unittest.TestCase):
    def test_is_that_of_cmake(self):
        if not PROGRAM:
            self.skipTest("TILECAST_PROGRAM is not set: there is nothing to compare with")
        if os.path.realpath(os.path.dirname(PROGRAM)) == os.path.realpath(sysconfig.get_path("scripts")):
            self.skipTest("TILECAST_PROGRAM is the package's own program: it would be compared with itself")
        for line in LINES:
            there = subprocess.run([PROGRAM, *line], capture_output=True, text=True, check=False)
            here = subprocess.run([sys.executable, "-m", "tilecast", *line], capture_output=True, text=True, check=False)
            # Builds of single targets are of the commits at which they were linked.
            shown, expected = (re.sub(r"\(commit [0-9a-z+]+,", "(commit,", done.stdout) for done in (here, there))
            self.assertEqual((here.returncode, shown, here.stderr), (there.returncode, expected, there.stderr), line)

    def test_statuses(self):
        for line, status in ((("gpus",), 0), (("forecast", "gpt2_large", "--gpu", "nothing"), 1), (("forecast", "--nothing"), 2)):
            done = subprocess.run([sys.executable, "-m", "tilecast", *line], capture_output=True, check=False)
            self.assertEqual(done.returncode, status, line)

    def test_a_closed_pipe_ends_it_quietly(self):
        with subprocess.Popen([sys.executable, "-m", "tilecast", "help", "forecast"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
            program.stdout.close()
            self.assertEqual((program.stderr.read(), program.wait()), (b"", 0))


if __name__ == "__main__":
    unittest.main()
