import pytest

from annotrace.errors import count, describe_os_error, first_few


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (PermissionError(13, "Permission denied", "run"), "run: Permission denied."),
        (OSError("the disk is full."), "the disk is full."),
        (TimeoutError(), "TimeoutError."),
    ],
)
def test_errors_of_the_system_are_one_line(error, expected):
    assert describe_os_error(error) == expected


def test_long_lists_of_long_names_are_cut():
    assert first_few(["x" * 100], 1) == repr("x" * 60)
    assert first_few(range(5), 2) == "'0', '1', ..."


def test_nouns_agree_with_their_number():
    assert [count(n, "item") for n in (0, 1, 2)] == ["0 items", "1 item", "2 items"]
    assert count(1, "class", "classes") == "1 class"
