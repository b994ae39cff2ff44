"""What two fits with one seed share: across threads, row orders and numbers of threads."""

import ast
import hashlib
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import annotrace as at
from annotrace.simulate import hammer_spammers, simulate_labels

N_ITEMS, N_CLASSES, N_THREADS = 120, 3, 8
CONFUSION = hammer_spammers(5, N_CLASSES, 0.7, random_state=0)
METHODS = [entry.name for entry in at.list_methods()]
QUICK = {
    "auto": {"init": "votes", "n_iter": 2},
    "crossfit": {"init": "votes", "n_iter": 2},
    "item-dependent": {"init": "votes", "n_iter": 2},
    "oracle": {"confusion": CONFUSION},
    "trace": {"recipe": at.Recipe(n_init=1)},
    "two-stage": {"mixup": 1.0},
}


def crowd():
    """Three classes in four dimensions, four labels per item: X, table."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, N_CLASSES, N_ITEMS)
    X = (rng.normal(size=(N_ITEMS, 4)) + 2 * truth[:, None]).astype(np.float32)
    return X, simulate_labels(truth, CONFUSION, labels_per_item=4, random_state=0)


def network_with_dropout():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.4), nn.Linear(16, N_CLASSES))


def fitted(name, **params):
    X, table = crowd()
    params = {"epochs": 4, "random_state": 3, "device": "cpu"} | QUICK.get(name, {}) | params
    return at.make(name, **params).fit(X, table)


def learned(model):
    """Return a hash of everything that a fit has learned."""
    digest = hashlib.sha256(model.posterior_.tobytes())
    digest.update(model.predict_proba(crowd()[0]).tobytes())
    for module in model.learned_modules().values():
        for value in module.state_dict().values():
            digest.update(value.contiguous().numpy().tobytes())
    return digest.hexdigest()


def learned_in_threads(jobs):
    """Return what each job, a method and its parameters, learns when all run at once."""
    together = threading.Barrier(len(jobs))

    def run(job):
        name, params = job
        together.wait()
        return learned(fitted(name, **params))

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(run, jobs))


@contextmanager
def others_draw():
    """Draw from all global generators in another thread."""
    done = threading.Event()

    def draw():
        while not done.is_set():
            torch.rand(7), random.random(), np.random.rand()  # noqa: NPY002

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_methods_that_are_fitted_at_once_learn_what_each_learns_alone():
    jobs = [(name, {}) for name in METHODS]
    alone = [learned(fitted(name)) for name in METHODS]
    with others_draw():
        assert learned_in_threads(jobs) == alone


@pytest.mark.parametrize("backbone", ["mlp", network_with_dropout()], ids=["mlp", "own module"])
def test_eight_threads_with_one_seed_learn_the_same(backbone):
    params = {"backbone": backbone, "recipe": at.Recipe(n_init=2)}
    alone = learned(fitted("trace", **params))
    for each in learned_in_threads([("trace", params)] * N_THREADS):
        assert each == alone


def test_a_network_of_the_user_that_is_warm_started_learns_the_same_in_threads():
    X, table = crowd()

    def continued():
        params = {"backbone": network, "epochs": 2, "random_state": 3, "warm_start": True}
        return learned(at.make("vanilla", **params).fit(X, table).fit(X, table))

    network = network_with_dropout()
    alone = continued()
    with ThreadPoolExecutor(N_THREADS) as pool:
        jobs = [pool.submit(continued) for _ in range(N_THREADS)]
    assert {job.result() for job in jobs} == {alone}


def test_aggregations_at_once_give_what_each_gives_alone():
    _, table = crowd()
    names = [entry.name for entry in at.aggregation.list_aggregations()]

    def aggregate(name):
        model = at.aggregation.make(name, random_state=0).fit(table)
        return model.posterior_.tobytes(), model.predict().tolist()

    alone = [aggregate(name) for name in names]
    with ThreadPoolExecutor(N_THREADS) as pool:
        assert list(pool.map(aggregate, names)) == alone


def global_states():
    return (
        torch.get_rng_state().numpy().tobytes(),
        random.getstate(),
        repr(np.random.get_state(legacy=True)),  # noqa: NPY002
    )


@pytest.fixture
def unchanged_states():
    """Check that a test leaves the global generators of torch, numpy and Python as they were."""
    before = global_states()
    yield
    assert global_states() == before


class DrawsAlways(nn.Module):
    """A network that draws in evaluation too, also by layers that initialise themselves late."""

    def __init__(self):
        super().__init__()
        self.layer = nn.LazyLinear(N_CLASSES)

    def forward(self, x):
        return self.layer(x + 0.1 * torch.randn_like(x))


@pytest.mark.usefixtures("unchanged_states")
@pytest.mark.parametrize("name", METHODS)
def test_a_fit_leaves_the_global_random_states_as_they_are(name):
    fitted(name)
    fitted(name, random_state=None)
    fitted(name, backbone=network_with_dropout())


@pytest.mark.usefixtures("unchanged_states")
@pytest.mark.parametrize("name", ["auto", "trace", "wdn"])
def test_a_network_that_draws_whenever_it_runs_leaves_the_states_as_they_are(name):
    alone = fitted(name, backbone=DrawsAlways()).posterior_
    assert np.array_equal(fitted(name, backbone=DrawsAlways()).posterior_, alone)


def test_a_callback_draws_from_the_generators_of_the_caller():
    drawn = []
    torch.manual_seed(5)
    expected = torch.rand(2).tolist()
    torch.manual_seed(5)
    fitted(
        "vanilla",
        backbone=network_with_dropout(),
        epochs=2,
        callbacks=[lambda epoch: drawn.append(float(torch.rand(())))],
    )
    assert drawn == expected


@pytest.mark.usefixtures("unchanged_states")
def test_everything_else_leaves_the_global_random_states_as_they_are(tmp_path):
    X, table = crowd()
    for entry in at.aggregation.list_aggregations():
        at.aggregation.make(entry.name).fit(table).predict()
    for name in ("auto", "wdn"):
        fitted(name).save(tmp_path / name)
        model = at.load(tmp_path / name)
        model.predict_proba(X)
    model = at.load(tmp_path / "auto")
    model.posterior(X, table)
    assert model.diagnosis_.verdict
    at.allocate(model, 10)
    at.write_report(model, tmp_path / "report.html")
    table.split(0.5, random_state=0)


# Row order

AGGREGATIONS = [entry.name for entry in at.aggregation.list_aggregations()]


def long_form(order):
    """Return the labels of the crowd as a frame with names, its rows in another order."""
    _, table = crowd()
    columns = {"item": table.item, "annotator": table.annotator, "label": table.label}
    return at.LabelTable.from_long(
        {role: [f"{role} {code:03}" for code in codes[order]] for role, codes in columns.items()}
    )


def shuffled_rows():
    return np.random.default_rng(1).permutation(crowd()[1].n_labels)


@pytest.mark.parametrize("name", METHODS)
def test_methods_do_not_depend_on_the_order_of_the_labels(name):
    X, table = crowd()
    items = [f"item {number:03}" for number in range(N_ITEMS)]
    params = {"epochs": 4, "random_state": 3} | QUICK.get(name, {})
    one, other = (
        at.make(name, **params).fit(X, long_form(order), items=items)
        for order in (np.arange(table.n_labels), shuffled_rows())
    )
    assert learned(one) == learned(other)


@pytest.mark.parametrize("name", AGGREGATIONS)
def test_aggregations_do_not_depend_on_the_order_of_the_labels_of_an_item(name):
    _, table = crowd()
    sizes = {"n_items": N_ITEMS, "n_annotators": len(CONFUSION), "n_classes": N_CLASSES}
    posteriors, predictions = [], []
    for order in (np.arange(table.n_labels), shuffled_rows()):
        columns = (codes[order] for codes in (table.item, table.annotator, table.label))
        again = at.LabelTable.from_codes(*columns, **sizes)
        model = at.aggregation.make(name, random_state=0).fit(again)
        posteriors.append(model.posterior_)
        predictions.append(model.predict())
    assert np.array_equal(*posteriors)
    assert np.array_equal(*predictions)


@pytest.mark.parametrize("name", AGGREGATIONS)
def test_aggregations_depend_on_the_order_of_the_items_by_rounding_alone(name):
    one, other = (
        at.aggregation.make(name, random_state=0).fit(long_form(order))
        for order in (np.arange(crowd()[1].n_labels), shuffled_rows())
    )
    assert one.table_.items.tolist() != other.table_.items.tolist()
    by_name = (each.posterior_[np.argsort(each.table_.items)] for each in (one, other))
    np.testing.assert_allclose(*by_name, rtol=0, atol=1e-9)


# Number of threads of torch


@pytest.fixture
def restore_threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def with_threads(n_threads, fit):
    torch.set_num_threads(n_threads)
    return fit().posterior_


@pytest.mark.usefixtures("restore_threads")
@pytest.mark.parametrize("name", AGGREGATIONS)
def test_aggregations_do_not_depend_on_the_number_of_threads(name):
    _, table = crowd()

    def fit():
        return at.aggregation.make(name, random_state=0).fit(table)

    one, four = (with_threads(n_threads, fit) for n_threads in (1, 4))
    assert np.array_equal(one, four)


@pytest.mark.usefixtures("restore_threads")
def test_networks_depend_on_the_number_of_threads_by_rounding_alone():
    one, two, again = (
        with_threads(n_threads, lambda: fitted("vanilla", epochs=2)) for n_threads in (1, 2, 2)
    )
    assert np.array_equal(two, again)
    np.testing.assert_allclose(one, two, rtol=0, atol=1e-4)


# Sources of random numbers

DRAWS = {
    *("bernoulli", "multinomial", "normal", "poisson", "rand", "rand_like", "randint", "randn"),
    *("randn_like", "randperm", "_sample_dirichlet", "uniform_", "normal_", "bernoulli_"),
    *("exponential_", "random_", "sample", "rsample"),
}
GLOBAL_SEEDS = {
    "manual_seed",
    "seed",
    "manual_seed_all",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
    "fork_rng",
}
OWNED = {"default_rng", "Generator", "RandomState", "SeedSequence"}


def global_draws(tree):
    """Yield (line, text) of every call that draws from a generator shared by all threads."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        owner, name = ast.unparse(node.func.value), node.func.attr
        takes_generator = any(keyword.arg == "generator" for keyword in node.keywords)
        is_numpy_random = owner in ("np.random", "numpy.random")
        if (
            (owner in ("torch", "Tensor") and name in DRAWS and not takes_generator)
            or (name.endswith("_") and name in DRAWS and not takes_generator)
            or (owner in ("torch", "torch.random", "torch.cuda") and name in GLOBAL_SEEDS)
            or (
                owner in ("torch", "torch.cuda", "torch.random") and name in ("manual_seed", "seed")
            )
            or (owner == "random" and name not in ("getstate", "lent", "initial_weights"))
            or (is_numpy_random and name not in OWNED | {"get_state"})
        ):
            yield node.lineno, f"{owner}.{name}"


def test_the_source_draws_from_no_global_generator():
    root = Path(at.__file__).parent
    found = {
        (path.relative_to(root).as_posix(), text)
        for path in root.rglob("*.py")
        for _, text in global_draws(ast.parse(path.read_text(encoding="utf-8")))
    }
    # It lends the states of a fit to the global generators, and returns the caller's.
    lending = "training/randomness.py"
    assert found == {(lending, "torch.set_rng_state"), (lending, "torch.cuda.set_rng_state")}


@pytest.mark.parametrize(
    "code",
    [
        "torch.rand(3)",
        "torch.manual_seed(0)",
        "x.normal_()",
        "random.random()",
        "np.random.seed(0)",
        "np.random.rand(3)",
    ],
)
def test_draws_from_global_generators_are_found(code):
    assert list(global_draws(ast.parse(code)))
