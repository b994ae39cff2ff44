"""Wide tables in which pandas wrote whole numbers with a decimal."""


def test_columns_with_and_without_missing_values_have_the_same_classes(read):
    table = read("item,kim,lee,truth\na,1,1.0,1\nb,2,,2.0\nc,1,2.0,\n")
    assert table.classes.tolist() == ["1", "2"]
    assert table.truth.tolist() == [0, 1, -1]
    assert table.label.tolist() == [0, 0, 1, 0, 1]


def test_other_labels_stay_as_they_are(read):
    assert read("item,kim,lee\na,1.0,no\nb,no,1.0\n").classes.tolist() == ["1.0", "no"]
    assert read("item,kim,lee\na,01,2\nb,2,01\n").classes.tolist() == ["01", "2"]
    long = read("item,worker,label\na,kim,1.0\nb,kim,2.0\n")
    assert long.classes.tolist() == ["1.0", "2.0"]


def test_an_answer_to_skip_may_be_written_as_in_the_file(read):
    table = read("item,kim,lee\na,1.0,9.0\nb,2.0,1.0\n", skip=["9.0"])
    assert table.classes.tolist() == ["1.0", "2.0"]
