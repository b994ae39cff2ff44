"""What the recipe adds to a training, for methods of each kind."""

import signal

import numpy as np
import pytest
from crowds import TRAINED_ONCE, blobs, digits, few_features, on_a_line
from torch import nn

import annotrace as at
from annotrace.errors import InputError, RunError
from annotrace.methods.recipe import Trained, is_swapped
from annotrace.simulate import hammer_spammers, simulate_labels
from annotrace.training import best_epoch

# Methods of each kind that trains by gradient descent.
NAMES = [
    "trace",
    "geo-crowd-layer",
    "crowd-layer",
    "union-net",
    "conal",
    "madl",
    "annot-mix",
    "coin-net",
    "gem",
    "mbem",
    "single-cm",
    "wdn",
    "soft-bootstrap",
    "vanilla",
    "two-stage",
]
X, TRUTH, TABLE, MATRICES = blobs(n_items=120)


def make(name, recipe, **params):
    params = {"epochs": 4, "random_state": 0} | params
    if name == "trace":
        params["structure"] = "full"
    return at.make(name, recipe=recipe, **params)


def n_trainings(name, recipe, warm=False, **params):
    """Count trainings by their first epochs; the EM methods have several in one."""
    firsts = []
    model = make(name, recipe, **params)
    if warm:
        model.set_params(warm_start=True).fit(X, TABLE)

    def note(epoch):
        firsts.append(epoch.number == 1)

    model.set_params(callbacks=[note]).fit(X, TABLE)
    in_one = {"gem": 4, "mbem": 2, "wdn": 2}
    return sum(firsts) / in_one.get(name, 1)


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_drives_any_method(name, tmp_path):
    recipe = at.Recipe(n_init=2)
    model = make(name, recipe).fit(X, TABLE)
    assert set(model.chosen_) >= {"mixup", "init"}
    assert np.all(np.isfinite(model.posterior_))
    np.testing.assert_allclose(model.posterior_.sum(1), 1, atol=1e-6)
    again = make(name, recipe).fit(X, TABLE)
    np.testing.assert_array_equal(again.posterior_, model.posterior_)
    model.save(tmp_path)
    np.testing.assert_array_equal(at.load(tmp_path).predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("name", NAMES)
def test_each_part_costs_trainings(name):
    one = {"mixup": 0.0, "repair": False, "calibrate": False}
    assert n_trainings(name, "none") == 1
    assert n_trainings(name, at.Recipe(n_init=1, **one)) == 1
    assert n_trainings(name, at.Recipe(n_init=3, **one)) == 3
    assert n_trainings(name, at.Recipe(n_init=1, **one | {"mixup": "auto"})) == 2


@pytest.mark.parametrize("name", NAMES)
def test_without_held_out_items_it_trains_once(name):
    recipe = at.Recipe(n_init=3)
    assert n_trainings(name, recipe, validation_fraction=0) == 1
    model = make(name, recipe, validation_fraction=0).fit(X, TABLE)
    assert model.temperature_ == 1
    assert model.chosen_["init"] == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_warm_start_trains_once(name):
    assert n_trainings(name, at.Recipe(n_init=3), warm=True) == 1


@pytest.mark.parametrize("name", NAMES)
def test_the_best_initialisation_is_kept_with_all_its_modules(name):
    """The kept training is one of the three, and equal to it in every learned module."""
    one = {"mixup": 0.0, "repair": False, "calibrate": False}
    histories = []

    def note(epoch):
        if epoch.number == 1:
            histories.append([])
        histories[-1].append(epoch.held_out)

    several = make(name, at.Recipe(n_init=3, **one), callbacks=[note], epochs=6).fit(X, TABLE)
    alone = make(name, at.Recipe(n_init=1, **one), epochs=6).fit(X, TABLE)
    assert several.chosen_["init"] in (0, 1, 2)
    assert best_epoch(several.history_).held_out <= best_epoch(alone.history_).held_out
    if several.chosen_["init"] == 0:
        np.testing.assert_array_equal(several.posterior_, alone.posterior_)
        np.testing.assert_array_equal(several.predict_proba(X), alone.predict_proba(X))


@pytest.mark.parametrize("name", ["single-cm", "wdn", "gem"])
def test_a_later_initialisation_that_is_worse_changes_nothing(name, monkeypatch):
    one = {"mixup": 0.0, "repair": False, "calibrate": False}
    alone = make(name, at.Recipe(n_init=1, **one)).fit(X, TABLE)
    monkeypatch.setattr(Trained, "rank", property(lambda trained: trained.trial.number))
    several = make(name, at.Recipe(n_init=2, **one)).fit(X, TABLE)
    np.testing.assert_array_equal(several.predict_proba(X), alone.predict_proba(X))
    np.testing.assert_array_equal(several.posterior_, alone.posterior_)


@pytest.mark.parametrize("name", NAMES)
def test_mixup_changes_the_training(name):
    one = {"n_init": 1, "repair": False, "calibrate": False}
    plain, mixed = (make(name, at.Recipe(mixup=mixup, **one)).fit(X, TABLE) for mixup in (0.0, 1.0))
    assert (plain.chosen_["mixup"], mixed.chosen_["mixup"]) == (0, 1)
    assert not np.allclose(plain.predict_proba(X), mixed.predict_proba(X))


@pytest.mark.parametrize("name", NAMES)
def test_calibration_changes_probabilities_and_not_classes(name):
    one = {"n_init": 1, "mixup": 0.0, "repair": False}
    plain, model = (
        make(name, at.Recipe(calibrate=calibrate, **one)).fit(X, TABLE)
        for calibrate in (False, True)
    )
    assert plain.temperature_ == 1 != model.temperature_
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    expected = plain.predict_proba(X) ** (1 / model.temperature_)
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-5)


def test_a_temperature_keeps_the_posterior_from_trusting_labels_too_much():
    X, truth, table = few_features()
    plain, model = (
        at.TraceRegularized(
            structure="full",
            recipe=at.Recipe(n_init=1, mixup=1.0, calibrate=calibrate),
            random_state=0,
        ).fit(X, table)
        for calibrate in (False, True)
    )
    assert plain.temperature_ == 1
    assert model.temperature_ < 0.8
    correct = [np.mean(fitted.posterior_.argmax(axis=1) == truth) for fitted in (plain, model)]
    assert correct[1] > correct[0] + 0.03
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    np.testing.assert_array_equal(model.confusion_, plain.confusion_)


def test_the_temperature_is_saved_and_estimated_again_by_the_next_fit(tmp_path):
    X, _, table = few_features()
    recipe = at.Recipe(n_init=1)
    model = at.TraceRegularized(structure="full", recipe=recipe, epochs=5, random_state=0)
    model.fit(X, table).save(tmp_path)
    loaded = at.load(tmp_path)
    assert loaded.temperature_ == model.temperature_ != 1
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.posterior(X, table), model.posterior(X, table))
    np.testing.assert_allclose(loaded.posterior(X, table), model.posterior_, atol=1e-6)
    loaded.set_params(warm_start=True, recipe=at.Recipe(n_init=1, calibrate=False)).fit(X, table)
    assert loaded.temperature_ == 1


@pytest.mark.parametrize("params", [{"protocol": "paper"}, {"validation_fraction": 0}])
def test_without_held_out_labels_there_is_no_temperature(params):
    model = at.TraceRegularized(epochs=1, random_state=0, **params).fit(X, TABLE)
    assert model.temperature_ == 1


def test_mixup_is_left_out_where_mixtures_lie_among_other_classes():
    X, truth, table = on_a_line()
    auto, always = (
        at.TraceRegularized(
            structure="full", recipe=at.Recipe(n_init=1, mixup=mixup), random_state=0
        ).fit(X, table)
        for mixup in ("auto", 1.0)
    )
    assert (auto.chosen_["mixup"], always.chosen_["mixup"]) == (0, 1)
    assert auto.score(X, truth) > always.score(X, truth) + 0.05
    auto.set_params(warm_start=True, epochs=2).fit(X, table)
    assert auto.chosen_ == {"lam": 0.01, "structure": "full", "mixup": 0.0, "init": 0}


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, 3),
        ({"recipe": at.Recipe(mixup=1.0, repair=False)}, 2),
        (TRAINED_ONCE, 1),
        ({"protocol": "paper"}, 1),
        ({"recipe": "none"}, 1),
        ({"validation_fraction": 0}, 1),
    ],
    ids=["default", "mixup", "once", "paper", "none", "nothing held out"],
)
def test_what_is_chosen_by_the_data_costs_trainings(params, expected):
    given = {"recipe": at.Recipe(repair=False)} | params
    if "protocol" in params:
        given["recipe"] = None
    epochs = []
    model = at.TraceRegularized(epochs=1, callbacks=[epochs.append], random_state=0, **given)
    model.fit(X, TABLE)
    assert len(epochs) == expected


def test_all_options_of_auto_parameters_are_tried():
    model = at.TraceRegularized(lam="auto", structure="auto")
    model.table_ = TABLE
    recipe = at.Recipe(n_init=1)
    tried = [tuple(trial.params.values()) for trial in recipe._trials(model)]
    assert tried == [(0.01, "full"), (0.01, "pooled"), (0.1, "full"), (0.1, "pooled")]
    assert len(at.Recipe(n_init=7)._trials(model)) == 7
    model.validation_fraction = 0
    assert len(recipe._trials(model)) == 1


@pytest.mark.parametrize(
    ("n_annotators", "n_classes", "expected"),
    [
        (100, 100, {"full", "pooled"}),
        (600, 100, {"low-rank", "per-class"}),
        (10_000, 1_000, {"low-rank"}),
    ],
)
def test_auto_tries_structures_that_labels_can_tell_apart(n_annotators, n_classes, expected):
    sizes = {"n_items": 2, "n_annotators": n_annotators, "n_classes": n_classes}
    model = at.TraceRegularized()
    model.table_ = at.LabelTable.from_codes([0, 1], [0, 1], [0, 1], **sizes)
    assert set(model.options()["structure"]) == expected


@pytest.mark.parametrize(("given", "expected"), [({}, 4), ({"patience": 30}, 30)])
def test_a_training_stops_after_steps_in_vain(given, expected, monkeypatch):
    monkeypatch.setattr("annotrace.methods.recipe.PATIENCE", 8)  # four epochs of two steps
    recipe = at.Recipe(n_init=1, mixup=0.0, repair=False)
    params = {"batch_size": 60, "epochs": 60, "lr": 3e-2, "random_state": 0, "recipe": recipe}
    model = at.TraceRegularized(**params, **given).fit(X, TABLE)
    best = min(model.history_, key=lambda epoch: epoch.held_out)
    assert len(model.history_) == best.number + expected


def test_a_penalty_that_swaps_classes_is_reduced():
    X, truth, table, _ = blobs(skill=0.75, labels_per_item=1)
    params = {"epochs": 60, "lr": 1e-2, "structure": "full", "lam": 3.0, "random_state": 0}
    plain, repaired = (
        at.TraceRegularized(recipe=at.Recipe(n_init=1, mixup=0.0, repair=repair), **params)
        for repair in (False, True)
    )
    assert is_swapped(plain.fit(X, table).annotator_model_, table)
    repaired.fit(X, table)
    assert repaired.chosen_["lam"] < 3.0
    assert repaired.score(X, truth) > 0.8 > plain.score(X, truth)


def test_initialisations_of_your_own_module_differ():
    losses = []
    at.TraceRegularized(
        backbone=nn.Linear(2, 3),
        epochs=1,
        structure="full",
        recipe=at.Recipe(n_init=3, mixup=0.0, repair=False),
        callbacks=[lambda epoch: losses.append(epoch.loss)],
        random_state=0,
    ).fit(X, TABLE)
    assert len(set(losses)) == 3


def test_a_recipe_checks_its_parameters():
    with pytest.raises(InputError, match="`n_init` to be a whole number larger than 0"):
        at.Recipe(n_init=0)
    with pytest.raises(InputError, match="`mixup` to be a number of at least 0 or 'auto'"):
        at.Recipe(mixup="on")
    with pytest.raises(InputError, match="`repair` to be True or False"):
        at.Recipe(repair=1)


# An interrupted fit resumes by the same call, and by no other.


def trace(path, callbacks=(), **params):
    given = {"epochs": 4, "structure": "full", "recipe": at.Recipe(n_init=2, mixup=0.0), **params}
    return at.TraceRegularized(**given, checkpoint=path, callbacks=callbacks)


def interrupt(path, n_epochs, **params):
    """Interrupt a fit after so many epochs."""
    left = iter(range(n_epochs, -1, -1))

    def note(epoch):
        if next(left) == 1:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        trace(path, callbacks=[note], **params).fit(X, TABLE)


@pytest.mark.parametrize("n_epochs", [2, 6])
def test_without_a_seed_it_resumes_with_the_one_that_was_drawn(tmp_path, n_epochs):
    path = tmp_path / "c.bin"
    interrupt(path, n_epochs)
    seen = []
    trace(path, callbacks=[seen.append]).fit(X, TABLE)
    assert len(seen) == 8 - n_epochs
    assert list(tmp_path.iterdir()) == []


def test_an_equal_generator_makes_the_same_call(tmp_path):
    whole = trace(None, random_state=np.random.default_rng(3)).fit(X, TABLE)
    interrupt(tmp_path / "c.bin", 2, random_state=np.random.default_rng(3))
    resumed = trace(tmp_path / "c.bin", random_state=np.random.default_rng(3)).fit(X, TABLE)
    np.testing.assert_array_equal(resumed.posterior_, whole.posterior_)


def test_a_checkpoint_of_other_features_is_rejected(tmp_path):
    interrupt(tmp_path / "c.bin", 2, random_state=0)
    with pytest.raises(RunError, match="other settings or data"):
        trace(tmp_path / "c.bin", random_state=0).fit(X[::-1].copy(), TABLE)


def test_a_checkpoint_of_another_recipe_is_rejected(tmp_path):
    interrupt(tmp_path / "c.bin", 2, random_state=0)
    with pytest.raises(RunError, match="other settings or data"):
        trace(tmp_path / "c.bin", random_state=0, recipe=at.Recipe(n_init=3)).fit(X, TABLE)


def test_without_the_first_checkpoint_the_fit_starts_again(tmp_path):
    interrupt(tmp_path / "c.bin", 6, random_state=0)
    assert {path.name for path in tmp_path.iterdir()} == {"c.bin", "c.bin.training"}
    (tmp_path / "c.bin").unlink()
    trace(tmp_path / "c.bin", random_state=0, epochs=2).fit(X, TABLE)
    assert list(tmp_path.iterdir()) == []


def test_a_new_network_learns_the_posterior_of_the_first(tmp_path):
    train, test = digits()
    crowd = hammer_spammers(5, 10, 0.5, random_state=0)
    table = simulate_labels(train.y, crowd, labels_per_item=2, random_state=0)
    recipe = {"n_init": 1, "mixup": 0.0, "repair": False}
    models = [
        at.TraceRegularized(
            structure="full", epochs=10, recipe=at.Recipe(refit=refit, **recipe), random_state=0
        ).fit(train.X, table)
        for refit in (0.0, 2.0)
    ]
    once, again = models
    np.testing.assert_array_equal(once.posterior_, again.posterior_)
    assert len(again.history_) == len(once.history_) + 20
    assert again.score(test.X, test.y) > once.score(test.X, test.y)
    again.save(tmp_path)
    loaded = at.load(tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(test.X), again.predict_proba(test.X))
    np.testing.assert_array_equal(loaded.posterior_, again.posterior_)
