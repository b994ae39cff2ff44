import threading

import pytest
import torch
from torch import nn

from annotrace.networks import BACKBONES, build_backbone
from annotrace.training import Randomness

CPU = torch.device("cpu")


def dropped(random):
    with random.lent():
        return nn.functional.dropout(torch.ones(50), 0.5)


@pytest.fixture
def unchanged():
    before = torch.get_rng_state()
    yield
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("name", BACKBONES)
def test_initial_weights_are_those_that_torch_draws_from_the_seed(name):
    sample = torch.linspace(0, 1, 2 * 8 * 8 * 3).view(2, 8, 8, 3)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        expected = build_backbone(name, sample, 3).state_dict()
    with Randomness(4, CPU).initial_weights():
        network = build_backbone(name, sample, 3)
    for key, value in network.state_dict().items():
        assert torch.equal(value, expected[key])


def test_initial_weights_elsewhere_are_drawn_as_usual():
    torch.manual_seed(4)
    expected = nn.Linear(3, 2).weight
    torch.manual_seed(4)
    built, done = threading.Event(), threading.Event()

    def build():
        with Randomness(0, CPU).initial_weights():
            nn.Linear(3, 2)
            built.set()
            done.wait()

    thread = threading.Thread(target=build)
    thread.start()
    built.wait()
    weight = nn.Linear(3, 2).weight
    done.set()
    thread.join()
    assert torch.equal(weight, expected)


@pytest.mark.usefixtures("unchanged")
def test_a_lent_generator_continues_where_it_was():
    random, same = Randomness(7, CPU, lends=True), Randomness(7, CPU)
    expected = torch.rand(4, generator=same.generator), torch.rand(4, generator=same.generator)
    with random.lent():
        assert random.generator is None
        with random.lent():
            assert torch.equal(torch.rand(4), expected[0])
    assert torch.equal(torch.rand(4, generator=random.generator), expected[1])


@pytest.mark.usefixtures("unchanged")
def test_an_error_while_it_is_lent_restores_the_states_of_the_caller():
    random = Randomness(7, CPU, lends=True)

    def interrupted():
        torch.rand(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), random.lent():
        interrupted()
    assert random.generator is not None


def test_what_need_not_be_lent_is_not():
    before, random = torch.get_rng_state(), Randomness(7, CPU)
    with random.lent():
        assert random.generator is not None
        torch.rand(1)
    assert not torch.equal(torch.get_rng_state(), before)


@pytest.mark.usefixtures("unchanged")
def test_only_one_fit_lends_its_generator_at_a_time():
    alone = [dropped(Randomness(seed, CPU, lends=True)) for seed in range(4)]
    together, found = threading.Barrier(4), {}

    def run(seed):
        random = Randomness(seed, CPU, lends=True)
        together.wait()
        found[seed] = [dropped(random) for _ in range(200)]

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in range(4):
        random = Randomness(seed, CPU, lends=True)
        assert torch.equal(found[seed][0], alone[seed])
        assert all(torch.equal(dropped(random), each) for each in found[seed])


def test_a_seed_within_leaves_what_follows_as_it_was():
    random, same = Randomness(7, CPU), Randomness(7, CPU)
    with random.reseeded(3):
        assert torch.equal(
            torch.rand(4, generator=random.generator),
            torch.rand(4, generator=Randomness(3, CPU).generator),
        )
    assert torch.equal(
        torch.rand(4, generator=random.generator), torch.rand(4, generator=same.generator)
    )


def test_the_state_is_a_list_of_tensors():
    random, other = Randomness(7, CPU), Randomness(0, CPU)
    torch.rand(3, generator=random.generator)
    state = random.state()
    assert [part.dtype for part in state] == [torch.uint8]
    other.set_state(state)
    assert torch.equal(
        torch.rand(4, generator=other.generator), torch.rand(4, generator=random.generator)
    )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_both_generators_are_lent():
    gpu = torch.device("cuda")
    before = torch.get_rng_state(), torch.cuda.get_rng_state()
    random, same = Randomness(7, gpu, lends=True), Randomness(7, gpu)
    expected = torch.rand(4, device=gpu, generator=same.generator)
    with random.lent():
        assert torch.equal(torch.rand(4, device=gpu), expected)
        torch.rand(1)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert torch.equal(torch.cuda.get_rng_state(), before[1])
    assert len(random.state()) == 2
