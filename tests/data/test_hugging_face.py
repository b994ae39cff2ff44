import logging
import sys
import warnings

import pytest

from annotrace.data import hugging_face
from annotrace.data.hugging_face import (
    as_input_error,
    first_sentence,
    require,
    silent_loading,
    silent_logs,
)
from annotrace.errors import InputError


@pytest.mark.parametrize("package", ["transformers", "sentence_transformers", "huggingface_hub"])
def test_a_missing_package_is_one_line_with_the_remedy(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError) as caught:
        require(package)
    assert str(caught.value) == (
        f"This encoder needs the package {package}. Install the encoders: "
        'pip install "annotrace[encoders]".'
    )


def test_an_old_package_is_refused(monkeypatch):
    pytest.importorskip("transformers")
    monkeypatch.setattr(hugging_face, "version", lambda package: "4.57.1")
    with pytest.raises(InputError, match=r"transformers 4\.57\.1 is too old; at least 5\.0"):
        require("transformers")


def test_logs_are_silent_until_the_last_thread_leaves(caplog):
    logger = logging.getLogger("transformers.models.some")
    parent = logging.getLogger("transformers")
    level = parent.level
    one, other = silent_logs(), silent_logs()
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert not logger.isEnabledFor(logging.ERROR)
    other.__exit__(None, None, None)
    assert parent.level == level


def test_loading_is_silent_and_leaves_no_trace(capfd):
    bars = pytest.importorskip("transformers").utils.logging
    before = bars.is_progress_bar_enabled()
    with silent_loading():
        warnings.warn("noise", stacklevel=1)
        logging.getLogger("transformers.some").warning("noise")
        assert not bars.is_progress_bar_enabled()
    assert bars.is_progress_bar_enabled() == before
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("message", "first"),
    [
        ("\n\n  It failed: see below.\nmore\n", "It failed: see below"),
        ("Cannot load 'a.b/c'. If you were trying to ...", "Cannot load 'a.b/c'"),
        ("", "ValueError"),
        ("x" * 1000, "x" * 200),
    ],
)
def test_a_long_message_becomes_its_first_sentence(message, first):
    assert first_sentence(ValueError(message)) == first


def test_errors_of_packages_become_one_line():
    with (
        pytest.raises(InputError, match=r"^M cannot be loaded \(no file\)\. Choose another\.$"),
        as_input_error("M cannot be loaded", "Choose another."),
    ):
        raise OSError("no file.\nStack:\n ...")
    with pytest.raises(InputError, match=r"^ours$"), as_input_error("M cannot be loaded", ""):
        raise InputError("ours")
