import pytest

from annotrace.experiments.__main__ import main
from annotrace.experiments.options import FLAGS, Options, options_from


def test_what_is_not_given_is_left_as_it_is():
    assert options_from({}) == Options()
    assert options_from({"seeds": 2, "select": None}) == Options(seeds=2)


def read(name, text):
    return next(flag for flag in FLAGS if flag.name == name).read(text)


def test_lists_are_by_comma_and_settings_are_read_as_json_where_they_are_any():
    assert read("methods", "trace, gem") == ("trace", "gem")
    assert read("skills", ".3,0.35") == (0.3, 0.35)
    assert read("densities", "5,1") == (5, 1)
    assert read("set", "lr=1e-3") == ("lr", 0.001)
    assert read("set", "backbone=resnet50") == ("backbone", "resnet50")
    assert read("set", "patience=null") == ("patience", None)


@pytest.mark.parametrize(
    ("message", "value"), [("false", False), ("False", False), ("True", True), ("None", None)]
)
def test_constants_may_be_spelled_as_in_json_or_in_python(message, value):
    assert read("set", f"repair={message}") == ("repair", value)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nothing"], "invalid choice"),
        (["digits", "--seeds", "0"], "argument --seeds"),
        (["digits", "--set", "epochs"], "argument --set"),
        (["digits", "--protocol", "slow"], "argument --protocol"),
        (["digits", "--methods", ","], "argument --methods"),
        (["digits", "--methods", ""], "argument --methods"),
        (["digits", "--skills", " , "], "argument --skills"),
        (["digits", "--densities", ","], "argument --densities"),
    ],
)
def test_what_cannot_be_read_is_reported_with_its_flag(args, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(args)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err
