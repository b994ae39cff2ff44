import pytest

from annotrace.errors import InputError

HEADER = "annotation_id,annotator,created_at,id,lead_time,mood,text,updated_at"


def rows(table):
    return list(map(tuple, table.to_frame().rows()))


def test_answers_are_the_columns_that_differ_within_a_task(read):
    lines = ["2,8,,1,1,bad,a,", "1,7,,1,1,good,a,", "3,7,,2,1,bad,b,", ",,,3,,,c,"]
    table = read("\n".join([HEADER, *lines]))
    assert rows(table) == [("1", "7", "good"), ("1", "8", "bad"), ("2", "7", "bad")]


def test_an_answer_that_is_missing_once_differs_too(read):
    table = read("\n".join([HEADER, "1,7,,1,1,good,a,", "2,8,,1,1,,a,", "3,7,,2,1,bad,b,"]))
    assert table.classes.tolist() == ["bad", "good"]


def test_json_in_cells_is_an_answer_and_other_brackets_are_a_name(read):
    cells = ['"[{""rating"": 2}]"', "[other]"]
    lines = [f"{k},{k},,1,1,{cell},a," for k, cell in enumerate(cells, start=1)]
    table = read("\n".join([HEADER, *lines]))
    assert rows(table) == [("1", "1", "2"), ("1", "2", "[other]")]


def test_the_format_is_not_another_table(read):
    with pytest.raises(InputError, match=r"is a table, but not one of Label Studio CSV"):
        read("item,worker,label\na,kim,x\n", format="label-studio-csv")
    with pytest.raises(InputError, match=r"is no csv or tsv file with the columns 'annotation_id'"):
        read('[{"id": 1, "mood": "x"}]', "a.json", format="label-studio-csv")
