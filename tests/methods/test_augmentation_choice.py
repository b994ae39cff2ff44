"""The choice of an augmentation, and how estimators apply one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import annotrace as at
from annotrace.errors import InputError
from annotrace.methods import augmentation_choice
from annotrace.simulate import hammer_spammers, simulate_labels

QUICK = {"recipe": "none", "epochs": 3, "batch_size": 64, "backbone": "cnn", "device": "cpu"}


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, at.LabelTable]:
    data, _ = at.data.load_digits().split(300)
    confusion = hammer_spammers(4, 10, 0.2, random_state=0)
    table = simulate_labels(data.y, confusion, labels_per_item=2, random_state=0)
    return data.X.reshape(-1, 8, 8), table


def with_losses(monkeypatch: pytest.MonkeyPatch, gains: dict[str, float]) -> None:
    """Let held-out labels be more likely by the gains of each augmentation."""
    noise = torch.linspace(-1, 1, 60, dtype=torch.float64)

    def losses(kind: str, *_: object) -> torch.Tensor:
        return 2 - gains[kind] + noise * (kind != "none")

    monkeypatch.setattr(augmentation_choice, "_losses", losses)


@pytest.mark.parametrize(
    ("crop", "flip", "chosen"),
    [
        (-0.5, -0.5, "none"),
        (0.5, -0.5, "crop"),
        (0.5, 1.0, "crop+flip"),
        (-0.5, 1.0, "crop+flip"),
        # Within a standard error, .076: not told from none.
        (0.05, 0.05, "none"),
    ],
)
def test_stronger_augmentation_must_be_significantly_better(
    digits, monkeypatch, crop: float, flip: float, chosen: str
) -> None:
    with_losses(monkeypatch, {"none": 0.0, "crop": crop, "crop+flip": flip})
    model = at.make("trace", random_state=0, **QUICK).fit(*digits)
    assert model.augment_ == chosen


def test_digits_are_not_mirrored(digits) -> None:
    settings = QUICK | {"epochs": 30}
    model = at.make("trace", random_state=0, **settings).fit(*digits)
    assert model.augment_ in ("none", "crop")


def test_choice_leaves_the_training_as_it_is(digits, monkeypatch) -> None:
    with_losses(monkeypatch, {"none": 0.0, "crop": 1.0, "crop+flip": 0.0})
    chosen = at.make("trace", random_state=0, **QUICK).fit(*digits)
    given = at.make("trace", random_state=0, augment="crop", **QUICK).fit(*digits)
    assert chosen.augment_ == given.augment_ == "crop"
    np.testing.assert_array_equal(chosen.posterior_, given.posterior_)


@pytest.mark.parametrize("method", ["trace", "vanilla", "two-stage", "mbem", "crossfit"])
def test_every_method_augments(digits, method: str) -> None:
    def fit(augment: str, seed: int = 0) -> np.ndarray:
        settings = {k: v for k, v in QUICK.items() if k != "recipe"}
        model = at.make(method, random_state=seed, augment=augment, **settings).fit(*digits)
        assert model.augment_ == augment
        return model.predict_proba(digits[0][:20])

    plain, flipped = fit("none"), fit("crop+flip")
    assert not np.allclose(plain, flipped)
    np.testing.assert_array_equal(flipped, fit("crop+flip"))


def test_prediction_is_not_augmented(digits) -> None:
    model = at.make("trace", random_state=0, augment="crop+flip", **QUICK).fit(*digits)
    first, again = (model.predict_proba(digits[0][:50]) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_own_function_is_called_in_training_only(digits) -> None:
    calls = []

    def record(x: torch.Tensor) -> torch.Tensor:
        calls.append(len(x))
        return x

    model = at.make("trace", random_state=0, augment=record, **QUICK).fit(*digits)
    assert model.augment_ == "own"
    n = len(calls)
    assert n > 0
    model.predict_proba(digits[0][:50])
    assert len(calls) == n
    plain = at.make("trace", random_state=0, augment="none", **QUICK).fit(*digits)
    np.testing.assert_allclose(model.posterior_, plain.posterior_, atol=1e-5)


def test_average_flips_is_the_mean_of_both(digits) -> None:
    X, table = digits
    model = at.make("trace", random_state=0, augment="none", **QUICK).fit(X, table)
    both = model.predict_proba(X[:50]) + model.predict_proba(X[:50, :, ::-1].copy())
    averaged = model.set_params(average_flips=True).predict_proba(X[:50])
    np.testing.assert_allclose(averaged, both / 2, atol=0.05)
    mirrored = model.predict_proba(X[:50, :, ::-1].copy())
    np.testing.assert_allclose(averaged, mirrored, atol=1e-5)


def test_few_items_and_the_papers_protocol_are_not_augmented(digits) -> None:
    X, table = digits
    few = at.make("trace", random_state=0, **QUICK).fit(X[:40], table.select_items(np.arange(40)))
    assert few.augment_ == "none"
    paper = at.make("trace", random_state=0, protocol="paper", **QUICK).fit(X, table)
    assert paper.augment_ == "none"


def test_augmentation_of_features_is_refused(digits) -> None:
    X, table = digits
    with pytest.raises(InputError, match="`augment` is for images"):
        at.make("trace", augment="crop", backbone="mlp").fit(X.reshape(len(X), -1), table)


def test_choice_is_saved(digits, tmp_path) -> None:
    model = at.make("trace", random_state=0, augment="crop", **QUICK).fit(*digits)
    model.save(tmp_path / "run")
    assert at.load(tmp_path / "run").augment_ == "crop"
