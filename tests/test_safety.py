"""The source has nothing that executes what a file holds."""

import ast
from pathlib import Path

import pytest

import annotrace

SOURCE = Path(annotrace.__file__).parent
PATHS = sorted(SOURCE.rglob("*.py"))
MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
CALLS = {
    *("eval", "exec", "compile", "__import__", "execfile"),
    *("torch.load", "torch.jit.load", "torch.hub.load", "torch.package.PackageImporter"),
    *("pd.read_pickle", "pl.DataFrame.deserialize"),
    *("yaml.load", "yaml.unsafe_load", "yaml.full_load", "os.system", "os.popen"),
    *("subprocess.getoutput", "subprocess.getstatusoutput", "runpy.run_path", "runpy.run_module"),
}
UNSAFE_VALUES = {"allow_pickle": {True}, "shell": {True}, "weights_only": {False}}


def dotted(node):
    """The name of what is called: "torch.load"."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def unsafe(tree):
    """What a module uses that could execute data."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name for name in names if name.split(".")[0] in MODULES or name in CALLS)
        elif isinstance(node, ast.Call):
            if dotted(node.func) in CALLS:
                yield dotted(node.func)
            for keyword in node.keywords:
                safe = isinstance(keyword.value, ast.Constant)
                values = UNSAFE_VALUES.get(keyword.arg or "", set())
                if values and (not safe or keyword.value.value in values):
                    yield f"{dotted(node.func)}({keyword.arg}=...)"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: str(path.relative_to(SOURCE)))
def test_nothing_executes_what_a_file_holds(path):
    assert list(unsafe(ast.parse(path.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "import joblib.externals",
        "from marshal import loads",
        "from torch import load",
        "eval(text)",
        "torch.load(path, weights_only=True)",
        "np.load(path, allow_pickle=True)",
        "np.load(path, allow_pickle=allowed)",
        "subprocess.run(command, shell=True)",
        "os.system(command)",
        "yaml.load(text)",
    ],
)
def test_what_is_unsafe_is_found(code):
    assert list(unsafe(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "re.compile(pattern)",
        "model.eval()",
        "np.load(path, allow_pickle=False)",
        "load(folder)",
        "subprocess.run(['git', 'log'])",
        "from annotrace.methods import load",
    ],
)
def test_what_is_safe_is_not(code):
    assert not list(unsafe(ast.parse(code)))
