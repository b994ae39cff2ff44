"""Scikit-learn's tools with every kind of labels that `fit` takes."""

import pickle
from functools import cache

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from crowds import NAMES, blobs, quick_params
from sklearn.base import clone
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version
from torch import nn

import annotrace as at
from annotrace.errors import InputError

NAMES_OF_CLASSES = np.array(["cat", "dog", "fox"])


def quick(**params):
    return at.TraceRegularized(**{"epochs": 5, "lr": 1e-2, "recipe": "none", **params})


def answers(table):
    """The labels by name, one row per item and one column per annotator; None if missing."""
    return np.append(NAMES_OF_CLASSES.astype(object), None)[table.to_wide()]


def repeated(table):
    """The table with the label of every item's first annotator given twice."""
    first = table.offsets[:-1]
    columns = (np.append(c, c[first]) for c in (table.item, table.annotator, table.label))
    return at.LabelTable.from_codes(*columns)


X, TRUTH, TABLE, CONFUSION = blobs(n_items=90)
ITEMS = np.array([f"item-{k:02}" for k in range(len(X))])
WIDE = {
    "array": TABLE.to_wide(),
    "nan": np.where(TABLE.to_wide() < 0, np.nan, TABLE.to_wide()),
    "text": answers(TABLE),
    "pandas": pd.DataFrame(TABLE.to_wide()),
    "polars": pl.DataFrame(TABLE.to_wide(), schema=list("abcdef")),
}
LABELS = {**WIDE, "table": TABLE, "repeats": repeated(TABLE)}
# By default scikit-learn looks for classes in y, and fails if labels are missing other than by -1.
NEED_CV = {"nan": KFold(5), "text": KFold(5)}


def true_classes(kind):
    return NAMES_OF_CLASSES[TRUTH] if kind == "text" else TRUTH


kinds_of_labels = pytest.mark.parametrize("kind", LABELS)


@cache
def held_out_log_likelihood(is_repeated):
    """The mean log-likelihood of a label in each of five folds, computed by hand."""
    table = LABELS["repeats" if is_repeated else "table"]
    means = []
    for train, test in KFold(5).split(X):
        model = quick(random_state=0).fit(X[train], table.select_items(train))
        p, held_out = model.predict_proba(X[test]), table.select_items(test)
        matrices = model.confusion_[held_out.annotator, :, held_out.label]
        means.append(np.log((p[held_out.item] * matrices).sum(axis=1)).mean())
    return means


@kinds_of_labels
def test_cross_val_score_is_the_likelihood_of_held_out_labels(kind):
    arguments = {"cv": NEED_CV.get(kind), "error_score": "raise"}
    scores = cross_val_score(quick(random_state=0), X, LABELS[kind], **arguments)
    np.testing.assert_allclose(scores, held_out_log_likelihood(kind == "repeats"), atol=1e-5)
    assert np.all(scores > np.log(1 / 3))


SEARCHES = [(GridSearchCV, kind) for kind in LABELS] + [(RandomizedSearchCV, "table")]


@pytest.mark.parametrize(("search", "kind"), SEARCHES)
def test_a_search_finds_the_learning_rate_without_truth(search, kind):
    options = {"n_iter": 2, "random_state": 0} if search is RandomizedSearchCV else {}
    found = search(quick(random_state=0), {"lr": [1e-6, 1e-2]}, cv=KFold(3), **options)
    found.fit(X, LABELS[kind])
    assert found.best_params_ == {"lr": 1e-2}
    assert np.all(np.isfinite(found.cv_results_["mean_test_score"]))
    assert found.score(X, true_classes(kind)) > 0.9  # a vector is the truth
    assert found.best_estimator_.confusion_.shape == (6, 3, 3)


@kinds_of_labels
def test_out_of_fold_predictions(kind):
    predicted = cross_val_predict(quick(random_state=0), X, LABELS[kind], cv=KFold(3))
    assert np.mean(predicted == true_classes(kind)) > 0.9


@kinds_of_labels
def test_a_pipeline_scales_features_before_the_crowd_classifier(kind):
    model = make_pipeline(StandardScaler(), quick(random_state=0)).fit(1e3 * X, LABELS[kind])
    scaled = StandardScaler().fit_transform(1e3 * X)
    alone = quick(random_state=0).fit(scaled, LABELS[kind])
    np.testing.assert_array_equal(model.predict_proba(1e3 * X), alone.predict_proba(scaled))
    assert len(model[-1].annotators_) == 6
    assert model.score(1e3 * X, LABELS[kind]) == alone.score(scaled, LABELS[kind])


def test_a_vector_is_one_annotators_labels_to_fit_and_the_truth_to_score():
    scores = cross_val_score(quick(random_state=0), X, TRUTH)
    assert scores.mean() > 0.9
    search = GridSearchCV(quick(random_state=0), {"lr": [1e-6, 1e-2]}).fit(X, pd.Series(TRUTH))
    assert search.best_params_ == {"lr": 1e-2}
    assert search.best_score_ == pytest.approx(scores.mean(), abs=0.1)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_a_frame_keep_their_names_through_a_pipeline(library):
    frame = pd.DataFrame(X, columns=["width", "height"])
    features = frame if library == "pandas" else pl.from_pandas(frame)
    steps = make_pipeline(StandardScaler(), quick(random_state=0)).set_output(transform=library)
    model = steps.fit(features, TABLE)
    assert model[-1].feature_names_in_.tolist() == ["width", "height"]
    assert model.score(features, TRUTH) > 0.9
    assert np.all(np.isfinite(cross_val_score(steps, features, TABLE)))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_with_an_item_column_is_split_with_a_table_in_its_order(library):
    frame = pd.DataFrame({"item": ITEMS, "width": X[:, 0], "height": X[:, 1]})
    features = frame if library == "pandas" else pl.from_pandas(frame)
    named = TABLE.replace(items=ITEMS, positional=False)
    scores = cross_val_score(quick(random_state=0), features, named, error_score="raise")
    by_position = cross_val_score(quick(random_state=0), X, TABLE)
    np.testing.assert_allclose(scores, by_position, rtol=1e-6)
    reverse = named.select_items(np.arange(len(X))[::-1])
    with pytest.raises(InputError, match=r"table.match_items\(names\)"):
        cross_val_score(quick(), features, reverse, error_score="raise")
    again = cross_val_score(quick(random_state=0), features, reverse.match_items(ITEMS))
    np.testing.assert_array_equal(again, scores)


def test_a_table_with_names_is_matched_to_rows_once():
    reverse = TABLE.replace(items=ITEMS, positional=False).select_items(np.arange(90)[::-1])
    with pytest.raises(InputError, match=r"match_items\(names, positional=True\)"):
        cross_val_score(quick(), X, reverse, error_score="raise")
    matched = reverse.match_items(ITEMS, positional=True)
    scores = cross_val_score(quick(random_state=0), X, matched)
    np.testing.assert_array_equal(scores, cross_val_score(quick(random_state=0), X, TABLE))


def test_a_table_is_divided_with_the_rows():
    parts = train_test_split(X, TABLE, test_size=0.2, random_state=0)
    rows = train_test_split(np.arange(90), test_size=0.2, random_state=0)
    assert [part.n_items for part in parts[2:]] == [72, 18]
    assert parts[2] == TABLE.select_items(rows[0])
    sizes, _, scores = learning_curve(quick(), X, TABLE, train_sizes=[0.5, 1.0], cv=3)
    assert sizes.tolist() == [30, 60]
    assert np.all(np.isfinite(scores))


def test_several_scorers_in_one_cross_validation():
    known = np.where(np.arange(90) % 3 == 0, TRUTH, -1)
    table = TABLE.replace(truth=known)
    scorers = {"labels": at.label_likelihood_scorer, "truth": at.truth_accuracy_scorer}
    pipeline = make_pipeline(StandardScaler(), quick(random_state=0))
    scores = cross_validate(pipeline, X, table, scoring=scorers, error_score="raise")
    np.testing.assert_array_equal(scores["test_labels"], cross_val_score(pipeline, X, TABLE))
    predicted = cross_val_predict(pipeline, X, table)
    for (_, test), score in zip(KFold(5).split(X), scores["test_truth"], strict=True):
        test = test[known[test] >= 0]
        assert score == np.mean(predicted[test] == TRUTH[test])


def test_folds_without_a_class_or_an_annotator():
    by_class = np.argsort(TRUTH, kind="stable")
    sorted_table = TABLE.select_items(by_class)
    alone = sorted_table.annotator + 6 * (sorted_table.item // 30).astype(np.int32)
    table = at.LabelTable.from_codes(sorted_table.item, alone, sorted_table.label)
    for y in (table, table.to_wide(), np.append(["a", "b", "c"], None)[table.to_wide()]):
        scores = cross_val_score(quick(), X[by_class], y, cv=KFold(3), error_score="raise")
        assert np.all(np.isfinite(scores))
    only_two = np.where(np.arange(90)[:, None] < 60, TABLE.to_wide() % 2, TABLE.to_wide())
    scores = cross_val_score(quick(), X, only_two, cv=KFold(3), error_score="raise")
    assert np.all(np.isfinite(scores))
    assert scores[2] < scores[0]  # class 2 is unknown to the third fit


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_items_are_routed_to_fit_and_score():
    named = TABLE.replace(items=ITEMS, positional=False)
    model = quick(random_state=0).set_fit_request(items=True).set_score_request(items=True)
    expected = cross_val_score(quick(random_state=0), X, TABLE)
    scores = cross_val_score(model, X, named, params={"items": ITEMS}, error_score="raise")
    np.testing.assert_array_equal(scores, expected)
    pipeline = make_pipeline(StandardScaler(), model)
    pipeline.fit(X, named, items=ITEMS)
    assert np.isfinite(pipeline.score(X, named, items=ITEMS))
    assert pipeline[-1].items_.tolist() == ITEMS.tolist()
    search = GridSearchCV(model, {"lr": [1e-6, 1e-2]}, cv=3)
    assert search.fit(X, named, items=ITEMS).best_params_ == {"lr": 1e-2}
    # Before 1.8 the default scorer of a pipeline passes nothing on.
    if parse_version(sklearn.__version__) >= parse_version("1.8"):
        scores = cross_val_score(pipeline, X, named, params={"items": ITEMS}, error_score="raise")
        assert np.all(scores > np.log(1 / 3))


@pytest.mark.usefixtures("routing")
def test_gold_is_routed_by_row():
    swapped = TABLE.replace(label=np.array([1, 0, 2])[TABLE.label])
    gold = np.where(np.arange(90) % 2 == 0, TRUTH, -1)
    model = quick(random_state=0, epochs=20).set_fit_request(gold=True)
    predicted = cross_val_predict(model, X, swapped, cv=3, params={"gold": gold})
    without = cross_val_predict(model, X, swapped, cv=3)
    assert np.mean(predicted == TRUTH) > np.mean(without == TRUTH) + 0.1


@pytest.mark.parametrize("kind", ["pandas", "table"])
def test_folds_may_be_fitted_by_several_processes(kind):
    # Arrays of more than a megabyte are mapped from disk, read-only, in each process.
    wide = np.tile(X, (1, 2000)).astype(np.float32)
    arguments = {"cv": KFold(2), "error_score": "raise"}
    one = cross_val_score(quick(random_state=0, epochs=1), wide, LABELS[kind], **arguments)
    two = cross_val_score(
        quick(random_state=0, epochs=1), wide, LABELS[kind], n_jobs=2, **arguments
    )
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("name", NAMES)
def test_estimators_survive_joblib_and_pickle(name, tmp_path):
    model = at.make(name, epochs=8, random_state=0, **quick_params(name, CONFUSION))
    assert repr(pickle.loads(pickle.dumps(model))) == repr(model)
    model.fit(X, TABLE)
    joblib.dump(model, tmp_path / "model.joblib")
    for again in (joblib.load(tmp_path / "model.joblib"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(again.posterior_, model.posterior_)
        assert again.score(X, TABLE) == model.score(X, TABLE)
        assert again.table_ == model.table_


@pytest.mark.parametrize("structure", ["full", "pooled"])
def test_a_clone_with_your_own_network_fits_the_same(structure, tmp_path):
    network = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 3))
    settings = {"structure": structure, "checkpoint": tmp_path / "fit.ckpt", "random_state": 0}
    model = quick(backbone=network, **settings)
    expected = clone(model).fit(X, TABLE).predict_proba(X)
    fitted = pickle.loads(pickle.dumps(model)).fit(X, TABLE)
    np.testing.assert_array_equal(fitted.predict_proba(X), expected)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(X), expected)
    assert np.all(np.isfinite(cross_val_score(model, X, TABLE, cv=2, error_score="raise")))


@pytest.mark.parametrize("entry", at.aggregation.list_aggregations(), ids=lambda entry: entry.name)
def test_aggregations_are_cloned_and_survive_pickle(entry):
    model = at.aggregation.make(entry.name, random_state=0)
    fitted = clone(model).fit(TABLE)
    assert clone(fitted).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.posterior_, fitted.posterior_)
    assert again.partial_fit(TABLE).table_.n_labels == 2 * TABLE.n_labels
