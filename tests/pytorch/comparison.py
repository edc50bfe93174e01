"""What the scripts that compare imported models with a reference share: arguments, packages, forecasts by the command line."""
import argparse
import importlib
import json
import subprocess
import warnings

# By the name of the module, that of the package.
_PACKAGES = {"torch": "torch", "timm": "timm", "torchvision": "torchvision", "transformers": "transformers", "onnx": "onnx", "onnxscript": "onnxscript"}


def parser(doc, only="models"):
    """A parser with the program and `--only`."""
    result = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("tilecast", help="the program, build/release/tilecast")
    result.add_argument("--only", default="", help=f"{only} whose names have one of these texts, separated by commas")
    return result


def is_chosen(name, only):
    return any(text in name for text in only.split(","))


def has_packages(*modules):
    """Whether the packages are installed; prints what is missing and how to get it. Then PyTorch uses one thread and says little."""
    try:
        for module in modules:
            importlib.import_module(module)
    except ImportError as error:
        print(f"skipped: {error} (pip install {' '.join(_PACKAGES[module] for module in modules)})")
        return False
    import torch
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    if "transformers" in modules:
        import transformers
        transformers.logging.set_verbosity_error()
    return True


def forecast(tilecast, model, *options, gpu="A100"):
    """The JSON of `tilecast forecast`. Raises RuntimeError with its message."""
    run = subprocess.run([str(tilecast), "forecast", str(model), "--gpu", gpu, "--format", "json", *options], capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr.strip()[:400])
    return json.loads(run.stdout)


def percent(found, expected):
    return 100 * (found / expected - 1) if expected else 0.0
