import numpy as np

import annotrace as at


def test_the_reason_tells_votes_chances_and_what_the_annotator_is_good_at(fitted):
    item, annotator = np.divmod(np.arange(400), 4)
    truth = np.arange(100) % 2
    label = np.where(annotator == 3, 1 - truth[item], truth[item])
    label[:4] = [0, 0, 0, 1]
    names = {
        "annotators": np.array(["ann", "bo", "cy", "di", "ed"]),
        "classes": np.array(["cat", "dog"]),
    }
    table = at.LabelTable(item, annotator, label, items=np.arange(100), **names)
    posterior = np.eye(2)[truth]
    posterior[0] = [0.6, 0.4]
    frame = at.allocate(fitted(table, posterior), 1, at_least=0)
    assert frame.row(0)[:2] == (0, "ed")
    assert frame["reason"][0].startswith(
        "3 of 4 labels say cat (now cat 60 %, dog 40 %); ed distinguishes cat from dog"
    )


def test_nobody_is_said_to_label_well_where_nothing_compares_annotators():
    table = at.LabelTable.from_codes(np.arange(60), np.arange(60) % 3, np.arange(60) % 2)
    frame = at.allocate(
        at.aggregation.make().fit(table), 20, available={0: None, 1: None, "new": 5}
    )
    assert len(frame) == 20
    said = set(frame["reason"])
    assert "1 of 1 labels say 0; nothing compares annotators yet" in said
    assert any(
        reason.endswith("new has no labels so far, too few to estimate their skill")
        for reason in said
    )
    assert not any("%" in reason for reason in said)
