import numpy as np
import pandas as pd
import polars as pl
import pytest
from crowds import blobs
from PIL import Image

import annotrace as at
from annotrace.data import decoding_pool
from annotrace.errors import InputError


def fit(X, y, **settings):
    return at.TraceRegularized(epochs=3, random_state=0, recipe="none").fit(X, y, **settings)


def named(table, names):
    frame = {
        "item": np.array(names)[table.item],
        "annotator": table.annotator,
        "label": table.label,
    }
    return at.LabelTable.from_long(frame, classes=[0, 1, 2])


def test_a_table_of_names_is_matched_by_name_whatever_the_order():
    X, _, table, _ = blobs(n_items=50)
    names = [f"item {k}" for k in range(50)]
    expected = fit(X, table)
    shuffled = np.random.default_rng(0).permutation(50)
    model = fit(X[shuffled], named(table, names), items=np.array(names)[shuffled])
    assert model.items_.tolist() == [names[k] for k in shuffled]
    ours = model.table_.votes()
    np.testing.assert_array_equal(ours, expected.table_.votes()[shuffled])


@pytest.fixture
def photos(tmp_path):
    """A folder of 30 images, of which 3.png is broken, and the labels of all."""
    for k in range(30):
        Image.new("L", (8, 8), 80 * (k % 3)).save(tmp_path / f"{k}.png")
    (tmp_path / "3.png").write_bytes(b"broken")
    table = at.simulate.simulate_labels(
        np.arange(30) % 3, np.tile(np.eye(3), (2, 1, 1)), labels_per_item=2, random_state=0
    )
    return tmp_path, named(table, [str(k) for k in range(30)])


def test_images_are_decoded_once_per_fit(photos, monkeypatch):
    folder, table = photos
    Image.new("L", (8, 8), 0).save(folder / "3.png")
    read = []
    render = decoding_pool.render_image
    monkeypatch.setattr(
        decoding_pool, "render_image", lambda file, how: read.append(file) or render(file, how)
    )
    fit(at.data.ImageFolder(folder, (8, 8), color=False), table)
    assert len(read) == len(set(read)) == 30


def test_the_labels_of_a_broken_image_are_left_out(photos):
    folder, table = photos
    images = at.data.ImageFolder(folder, (8, 8), color=False, on_error="skip")
    gold = {"3": 0, "4": 1}
    with pytest.warns(UserWarning, match="is skipped|Left out") as seen:
        model = fit(images, table, gold=gold)
    messages = [str(warning.message) for warning in seen]
    assert "Left out 2 labels of 1 item without a readable image." in messages
    assert (model.table_.n_items, model.table_.n_labels) == (29, 58)
    assert "3" not in model.items_
    with pytest.warns(UserWarning, match="skipped"):
        rest = images.matching(table.items).decoded()
    again = fit(rest, table[np.flatnonzero(table.items != "3")], gold={"4": 1})
    np.testing.assert_array_equal(model.posterior_, again.posterior_[_order(again, model)])


def _order(model, other):
    return [model.items_.tolist().index(name) for name in other.items_]


def test_the_labels_of_images_that_were_not_encoded_are_left_out(photos):
    folder, table = photos
    images = at.data.ImageFolder(folder, on_error="skip").matching(table.items)
    with pytest.warns(UserWarning, match="skipped"):
        encoded = at.data.encode(images, lambda batch: [[i.getpixel((0, 0))[0]] for i in batch])
    with pytest.warns(UserWarning, match="Left out 2 labels of 1 item"):
        model = fit(encoded, table)
    assert model.table_.n_items == 29


def test_names_without_items_are_rejected_with_the_remedy():
    X, _, table, _ = blobs(n_items=50)
    with pytest.raises(InputError, match=r"fit\(X, table, items=names\)"):
        fit(X, named(table, [f"i{k}" for k in range(50)]))


def test_unmatched_names_are_counted_both_ways():
    X, _, table, _ = blobs(n_items=50)
    names = [f"i{k}" for k in range(50)]
    with pytest.raises(
        InputError, match=r"2 items of the labels have no features .*2 rows of features have no"
    ):
        fit(X, named(table, names), items=[*names[:48], "x", "y"])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_frame_with_an_item_column_matches_itself(frame):
    X, _, table, _ = blobs(n_items=50)
    names = [f"i{k}" for k in range(50)]
    features = frame({"image": names, "a": X[:, 0], "b": X[:, 1]})
    model = fit(features, named(table, names))
    assert model.feature_names_in_.tolist() == ["a", "b"]
    without_names = at.data.ArraySource(X)
    np.testing.assert_allclose(model.predict_proba(features), model.predict_proba(without_names))


def columns(X, names, items, kind, folder):
    """Rows of two features as a frame with items, a frame without, or a parquet file."""
    features = {name: X[:, "ab".index(name)] for name in names}
    frame = pl.DataFrame(features if kind == "plain frame" else {"item": items} | features)
    if kind != "parquet":
        return frame
    frame.write_parquet(folder / f"{names}.parquet")
    return at.data.read_features(folder / f"{names}.parquet")


@pytest.mark.parametrize("kind", ["frame with items", "plain frame", "parquet"])
def test_features_are_matched_by_name_after_saving_too(kind, tmp_path):
    X, _, table, _ = blobs(n_items=50)
    names = [f"i{k}" for k in range(50)]
    labels = table if kind == "plain frame" else named(table, names)
    same, swapped = (columns(X, order, names, kind, tmp_path) for order in ("ab", "ba"))
    model = fit(same, labels)
    model.save(tmp_path / "run")
    for either in (model, at.load(tmp_path / "run")):
        np.testing.assert_array_equal(either.predict_proba(same), model.predict_proba(same))
        with pytest.raises(ValueError, match=r"(?s)feature names should match .* same order"):
            either.predict_proba(swapped)
        with pytest.raises(ValueError, match=r"(?s)feature names should match .* same order"):
            either.posterior(swapped, labels)


def test_names_of_features_are_forgotten_when_there_are_none():
    X, _, table, _ = blobs(n_items=50)
    model = fit(pd.DataFrame(X, columns=["a", "b"]), table)
    assert not hasattr(model.fit(at.data.ArraySource(X), table), "feature_names_in_")


def test_an_array_of_annotators_and_a_vector_are_labels_too():
    X, truth, table, _ = blobs(n_items=50)
    wide = table.to_wide()
    np.testing.assert_array_equal(
        fit(X, wide).predict_proba(X), fit(X, at.LabelTable.from_wide(wide)).predict_proba(X)
    )
    with_nan = np.where(wide < 0, np.nan, wide)
    np.testing.assert_array_equal(fit(X, with_nan).posterior_, fit(X, wide).posterior_)
    vector = fit(X, np.where(truth == 0, -1, truth))
    assert vector.classes_.tolist() == [-1, 1, 2]
    assert vector.confusion_.shape == (1, 3, 3)


def test_text_classes_come_back_as_text():
    X, truth, _, _ = blobs(n_items=50)
    names = np.array(["cat", "dog", "emu"])[truth]
    assert set(fit(X, names).predict(X)) <= {"cat", "dog", "emu"}


def test_rows_of_another_shape_are_rejected_at_prediction():
    X, _, table, _ = blobs(n_items=50)
    model = fit(X, table)
    with pytest.raises(ValueError, match="features"):
        model.predict(np.zeros((3, 5)))


def test_a_different_number_of_rows_is_rejected():
    X, _, table, _ = blobs(n_items=50)
    with pytest.raises(InputError, match="49 rows of X and labels for 50 items"):
        fit(X[:49], table)


def test_a_table_without_labels_is_rejected():
    X = blobs(n_items=50)[0]
    empty = at.LabelTable.from_codes([], [], [], n_items=50, n_annotators=2, n_classes=3)
    with pytest.raises(InputError, match="no labels"):
        fit(X, empty)


@pytest.mark.parametrize("module", [pl, pd])
def test_names_of_rows_are_not_a_feature_where_labels_go_by_position(module):
    X, _, table, _ = blobs(n_items=30)
    frame = module.DataFrame({"item": range(30), "a": X[:, 0], "b": X[:, 1]})
    with pytest.raises(InputError, match="column 'item' of X names its rows"):
        fit(frame, table)
    assert fit(frame[["a", "b"]], table).n_features_in_ == 2


def test_a_warm_start_on_columns_in_another_order_is_rejected():
    X, _, table, _ = blobs(n_items=30)
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = at.Vanilla(epochs=1, random_state=0, warm_start=True).fit(frame, table)
    with pytest.raises(InputError, match="Expected the features of the last fit, 'a', 'b', but"):
        model.fit(frame[["b", "a"]], table)
    model.fit(frame, table)


@pytest.mark.parametrize("module", [pl, pd])
@pytest.mark.parametrize(("name", "role"), [("item", "items"), ("worker", "annotators")])
def test_columns_of_names_are_not_annotators(module, name, role):
    X, truth, _, _ = blobs(n_items=30)
    frame = module.DataFrame({name: range(30), "label": truth})
    with pytest.raises(InputError, match=f"the column '{name}' names {role}"):
        fit(X, frame)
    assert fit(X, frame["label"]).table_.n_annotators == 1
    answers = module.DataFrame({"kim": truth, "lee": truth})
    assert fit(X, answers).table_.n_annotators == 2


def test_dates_are_classes_by_their_text(tmp_path):
    X, truth, _, _ = blobs(n_items=30)
    days = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], dtype="datetime64[D]")
    fit(X, days[truth]).save(tmp_path)
    assert at.load(tmp_path).classes_.tolist() == days.astype(str).tolist()


def test_a_vector_with_a_row_that_has_no_label_is_rejected():
    X = blobs(n_items=30)[0]
    with pytest.raises(InputError, match="y has rows without a label"):
        fit(X, ["a", "b", float("nan")] * 10)
