"""The layer for texts against scikit-learn's TF-IDF and a dense product."""

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer

from annotrace.data.ngrams import N_CODES
from annotrace.errors import InputError
from annotrace.networks.bags import Bags
from annotrace.networks.text import fit_text_layer, stack_text_layers, texts_with_saved_codes

COUNTS = np.random.default_rng(0).poisson(0.7, (12, 30)).astype(np.float32)
COUNTS[:2, :3] = 1


def bags(counts):
    padding = sparse.csr_array((len(counts), N_CODES - counts.shape[1]))
    return Bags.from_matrix(sparse.csr_array(sparse.hstack([sparse.csr_array(counts), padding])))


def test_it_is_a_linear_layer_on_tf_idf():
    torch.manual_seed(0)
    layer = fit_text_layer(bags(COUNTS), 4, std=1.0)
    kept = (COUNTS > 0).sum(axis=0) >= 2
    expected = TfidfTransformer(sublinear_tf=True).fit_transform(COUNTS[:, kept]).toarray()
    found = layer(bags(COUNTS)).detach().numpy()
    np.testing.assert_allclose(found, expected @ layer.weight.detach().numpy(), atol=1e-5)


def test_unknown_ngrams_and_empty_texts_give_the_bias():
    layer = fit_text_layer(bags(COUNTS), 4, std=1.0)
    layer.bias.data[:] = 7
    new = np.zeros((2, 40), np.float32)
    new[0, 35] = 1
    assert layer(bags(new)).detach().numpy() == pytest.approx(np.full((2, 4), 7.0))


def test_a_stack_computes_what_each_layer_does():
    layers = [fit_text_layer(bags(COUNTS), 4, std=1.0) for _ in range(3)]
    stacked = stack_text_layers(layers)(bags(COUNTS))
    for place, layer in enumerate(layers):
        torch.testing.assert_close(stacked[:, place], layer(bags(COUNTS)))


def test_saved_codes_make_a_layer_of_the_same_shape():
    layer = fit_text_layer(bags(COUNTS), 4, std=1.0)
    again = fit_text_layer(texts_with_saved_codes(layer.state_dict()), 4)
    again.load_state_dict(layer.state_dict())
    torch.testing.assert_close(again(bags(COUNTS)), layer(bags(COUNTS)))


@pytest.mark.parametrize("codes", [[], [2, 1], [-1, 2], [0, N_CODES], [1, 1]])
def test_invalid_codes_are_refused(codes):
    state = {"stage.codes": torch.tensor(codes, dtype=torch.int32)}
    with pytest.raises(InputError, match="increasing"):
        texts_with_saved_codes(state)


def test_texts_without_words_are_refused():
    with pytest.raises(InputError, match="no words"):
        fit_text_layer(bags(np.zeros((3, 5), np.float32)), 2)
