"""The README's example prints what it says."""
import contextlib
import io
import pathlib
import re
import unittest

from support import needs

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"


class Readme(unittest.TestCase):
    @needs("matplotlib")
    def test_example(self):
        import matplotlib
        matplotlib.use("Agg")
        examples = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE)
        self.assertEqual(len(examples), 1)
        expected = re.findall(r"^print\(.*\) +# (.*)$", examples[0], re.MULTILINE)
        self.assertGreaterEqual(len(expected), 3)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(examples[0], {})
        self.assertEqual(printed.getvalue().splitlines(), expected)


if __name__ == "__main__":
    unittest.main()
